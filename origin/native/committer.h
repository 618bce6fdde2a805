/*
 * The committer: takes composed batches from JavaScript, completes their headers, writes them with several
 * in flight and tells, in one word, how many are durable. What is shared with JavaScript:
 *
 *   control       words of 32 bits, 64 bytes apart, see `struct control`
 *   descriptors   a ring of `ring_slots` × 8 doubles, see `enum field`; one producer, JavaScript
 *   areas         page-aligned memory that batches lie in
 *
 * Counters of descriptors wrap at 2^32. Invariant: durable ≤ taken ≤ published ≤ durable + ring_slots; of those
 * between durable and taken at most `depth` are being written and the others wait for one before them. A failed
 * one stays in front for good.
 */
#ifndef FOREBAY_COMMITTER_H
#define FOREBAY_COMMITTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  block_bytes = 4096,
  header_bytes = 68,
  ring_slots = 64,
  depth_max = 16,
  areas_max = 1024,
};

struct word {
  _Atomic uint32_t value;
  char rest[60];
};

/* JavaScript's indices into it are 16 words apart; origin/journal/nativeCommitter.ts names them. */
struct control {
  struct word published; /* descriptors handed over; JavaScript writes it */
  struct word parked;    /* 1: the committer sleeps and wants the doorbell; whoever rings makes it 0 */
  struct word durable;   /* descriptors durable, in order */
  struct word waking;    /* 1: a wake of JavaScript is on its way; JavaScript makes it 0 */
  struct word failed;    /* errno of the first failure; nothing is taken any more */
  struct word quiet;     /* 1: after a failure, nothing is in flight any more */
  struct word bells;     /* doorbells rung */
  struct word wakes;     /* wakes of JavaScript */
};

enum field { f_area, f_end, f_entries, f_flags, f_generation, f_position, f_lsn, f_unused, fields };

struct area {
  uint8_t *base;
  size_t bytes;
};

/* One batch being written. */
struct flight {
  uint8_t *base;
  uint32_t bytes;
  uint32_t done; /* whole blocks written so far */
  uint64_t position;
  uint32_t area;
  bool complete;
};

struct committer;

struct backend {
  const char *name;
  /* Starts the threads; 0 or an errno, with nothing left behind. */
  int (*start)(struct committer *);
};

extern const struct backend uring_backend, threads_backend;

/* Where test builds can be made to sleep; see PAUSE. */
enum pause {
  pause_before_parked, /* nothing to take was seen, `parked` is not 1 yet */
  pause_parked,        /* `parked` is 1, `published` not read again yet */
  pause_before_sleep,
  pause_after_failure, /* before a completion after the first failure is looked at */
  pause_write,         /* before a blocking write */
  pauses,
};

struct committer {
  /* Owners of this memory: the handle, every ArrayBuffer over it. */
  _Atomic uint32_t owners;
  struct control *control;
  double *descriptors;
  struct area areas[areas_max];
  _Atomic uint32_t area_count;
  uint32_t areas_kept; /* the first ones, in one piece, which io_uring may have registered */

  /* The active segment; changed by JavaScript only while nothing is published that is not durable. */
  int fd;
  uint32_t salt;
  uint32_t file_version;

  const struct backend *backend;
  uint32_t depth;
  int bell; /* eventfd */
  /* The directory's locked file, or -1: with `uring` a write may outlive the process, and the lock with it. */
  int lock_fd;
  pthread_t threads[depth_max];
  uint32_t thread_count;
  bool running;
  _Atomic bool stopping;

  /* Owned by whoever composes: the one thread of uring, the holder of `lock` of threads. */
  pthread_mutex_t lock;
  uint32_t idle;
  uint32_t taken;
  uint32_t in_flight;
  uint64_t term, seq, durable_seq;
  uint32_t previous_crc;
  struct flight flights[ring_slots]; /* by descriptor */

  void (*wake)(void *);
  void *wake_argument;
#ifdef FOREBAY_TESTING
  _Atomic uint32_t pause_us[pauses];
  _Atomic int64_t fault_result; /* what the next write is said to have returned … */
  _Atomic int32_t fault_after;  /* … after this many; -1: none */
#endif
};

/* With `areas` areas of `area_bytes` and no threads yet; NULL when there is no memory. Has one owner. */
struct committer *committer_allocate(uint32_t areas, size_t area_bytes);
/* One owner less; the last one frees it. */
void committer_release(struct committer *c);
/* Maps `count` areas back to back from `index` on. */
bool committer_map_area(struct committer *c, uint32_t index, uint32_t count, size_t bytes);
/* Ends the threads; what is in flight is waited for. */
void committer_stop(struct committer *c);

/* Takes and composes the next batch; NULL when there is none, no slot, or a failure. */
struct flight *committer_take(struct committer *c);
/* What a write returned: bytes or a negative errno. True: the rest must be written. */
bool committer_wrote(struct committer *c, struct flight *flight, int64_t result);
bool committer_has_more(struct committer *c);
void committer_fail(struct committer *c, int number);
void committer_ring(struct committer *c);
/* Wants the doorbell, and rings it itself if something was published meanwhile. */
void committer_park(struct committer *c);
/* In test builds: aborts when something was published and nobody came for a second. */
void committer_missed(struct committer *c);

/*
 * Test builds (FOREBAY_TESTING) sleep where it is asked for between the steps of parking, and can be built without any
 * single wake (WITHOUT_…), to show that a test notices.
 */
#ifdef FOREBAY_TESTING
void committer_pause(struct committer *c, enum pause step);
#define PAUSE(c, step) committer_pause(c, step)
extern _Atomic int setup_refusal;
#else
#define PAUSE(c, step) ((void)0)
#endif

#endif
