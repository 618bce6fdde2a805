/*
 * The backend of one thread with an io_uring of its own, by raw system calls. The read of the doorbell is armed in
 * the ring, so that completions and the doorbell end the same wait. Fixed file and, where the memory may be locked,
 * fixed buffers; every write is a single request with RWF_DSYNC.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "committer.h"

enum { entries = 64, file_slot = 0, bell_slot = 1, lock_slot = 2, files_count = 3, bell_tag = ring_slots };

struct ring {
  int fd;
  struct io_uring_params params;
  uint8_t *rings; /* submission and completion ring in one mapping */
  size_t rings_bytes;
  struct io_uring_sqe *sqes;
  size_t sqes_bytes;
  uint32_t tail, to_submit;
  bool fixed_buffers;
  uint32_t file_version;
  uint64_t rung;
};

/* What the starting thread waits for. */
struct start {
  struct committer *committer;
  sem_t ready;
  int failed;
};

static _Atomic uint32_t *word_at(uint8_t *rings, uint32_t offset) {
  return (_Atomic uint32_t *)(void *)(rings + offset);
}

#ifdef FOREBAY_TESTING
_Atomic int setup_refusal;
#endif

static int set_up(struct io_uring_params *params) {
#ifdef FOREBAY_TESTING
  if (atomic_load(&setup_refusal) != 0) {
    errno = atomic_load(&setup_refusal);
    return -1;
  }
#endif
  return (int)syscall(__NR_io_uring_setup, entries, params);
}

static int register_with(struct ring *ring, unsigned operation, const void *what, unsigned count) {
  return (int)syscall(__NR_io_uring_register, ring->fd, operation, what, count);
}

static void close_ring(struct ring *ring) {
  if (ring->rings != NULL) {
    munmap(ring->rings, ring->rings_bytes);
  }
  if (ring->sqes != NULL) {
    munmap(ring->sqes, ring->sqes_bytes);
  }
  close(ring->fd);
}

static void *map(struct ring *ring, size_t bytes, off_t offset) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, offset);
  return at == MAP_FAILED ? NULL : at;
}

static int map_rings(struct ring *ring) {
  const struct io_uring_params *p = &ring->params;
  size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
  size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
  ring->rings_bytes = sq > cq ? sq : cq;
  ring->sqes_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
  if (!(p->features & IORING_FEAT_SINGLE_MMAP)) {
    return EINVAL;
  }
  ring->rings = map(ring, ring->rings_bytes, IORING_OFF_SQ_RING);
  ring->sqes = ring->rings == NULL ? NULL : map(ring, ring->sqes_bytes, IORING_OFF_SQES);
  return ring->sqes == NULL ? errno : 0;
}

/* 0 or an errno, with nothing left behind. */
static int open_ring(struct ring *ring, struct committer *c) {
  *ring = (struct ring){
      .params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN}};
  ring->fd = set_up(&ring->params);
  if (ring->fd < 0) {
    return errno;
  }
  int failed = map_rings(ring);
  int files[files_count] = {[file_slot] = -1, [bell_slot] = c->bell, [lock_slot] = c->lock_fd};
  if (failed == 0 && register_with(ring, IORING_REGISTER_FILES, files, files_count) != 0) {
    failed = errno;
  }
  if (failed != 0) {
    close_ring(ring);
    return failed;
  }
  /* The areas kept lie in one piece. Where so much memory may not be locked, writes name it by address. */
  struct iovec kept = {c->areas[0].base, c->areas[0].bytes * c->areas_kept};
  ring->fixed_buffers = register_with(ring, IORING_REGISTER_BUFFERS, &kept, 1) == 0;
  ring->tail = atomic_load(word_at(ring->rings, ring->params.sq_off.tail));
  return 0;
}

/* There are always fewer than `entries` requests prepared: one per batch in flight and the doorbell. */
static struct io_uring_sqe *next_request(struct ring *ring) {
  uint32_t index = ring->tail & (ring->params.sq_entries - 1);
  struct io_uring_sqe *request = &ring->sqes[index];
  memset(request, 0, sizeof *request);
  atomic_store_explicit(word_at(ring->rings, ring->params.sq_off.array + index * 4), index,
                        memory_order_relaxed);
  ring->tail++;
  ring->to_submit++;
  return request;
}

static void prepare_write(struct ring *ring, struct committer *c, struct flight *flight) {
  struct io_uring_sqe *request = next_request(ring);
  bool fixed = ring->fixed_buffers && flight->area < c->areas_kept;
  request->opcode = fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE;
  request->fd = file_slot;
  request->flags = IOSQE_FIXED_FILE;
  request->off = flight->position + flight->done;
  request->addr = (uint64_t)(uintptr_t)(flight->base + flight->done);
  request->len = flight->bytes - flight->done;
  request->rw_flags = RWF_DSYNC;
  request->user_data = (uint64_t)(flight - c->flights);
}

static void prepare_bell(struct ring *ring) {
  struct io_uring_sqe *request = next_request(ring);
  request->opcode = IORING_OP_READ;
  request->fd = bell_slot;
  request->flags = IOSQE_FIXED_FILE;
  request->addr = (uint64_t)(uintptr_t)&ring->rung;
  request->len = sizeof ring->rung;
  request->user_data = bell_tag;
}

/* The ring's thread alone may change its table of files. */
static int use_file(struct ring *ring, struct committer *c) {
  if (ring->file_version == c->file_version) {
    return 0;
  }
  int fd = c->fd;
  struct io_uring_files_update update = {.offset = file_slot, .fds = (uint64_t)(uintptr_t)&fd};
  if (register_with(ring, IORING_REGISTER_FILES_UPDATE, &update, 1) != 1) {
    return errno;
  }
  ring->file_version = c->file_version;
  return 0;
}

static void take_all(struct ring *ring, struct committer *c) {
  struct flight *flight;
  while ((flight = committer_take(c)) != NULL) {
    int failed = use_file(ring, c);
    if (failed != 0) {
      committer_wrote(c, flight, -failed);
      return;
    }
    prepare_write(ring, c, flight);
  }
}

/* Handles what has completed; false when nothing has. */
static bool reap(struct ring *ring, struct committer *c) {
  const struct io_cqring_offsets *at = &ring->params.cq_off;
  _Atomic uint32_t *head_word = word_at(ring->rings, at->head);
  uint32_t head = atomic_load_explicit(head_word, memory_order_relaxed);
  uint32_t tail = atomic_load_explicit(word_at(ring->rings, at->tail), memory_order_acquire);
  const struct io_uring_cqe *completions = (const void *)(ring->rings + at->cqes);
  bool any = head != tail;
  for (; head != tail; head++) {
    const struct io_uring_cqe *completion = &completions[head & (ring->params.cq_entries - 1)];
    if (completion->user_data == bell_tag) {
      prepare_bell(ring);
      continue;
    }
    struct flight *flight = &c->flights[completion->user_data];
    if (committer_wrote(c, flight, completion->res)) {
      prepare_write(ring, c, flight);
    }
  }
  atomic_store_explicit(head_word, head, memory_order_release);
  return any;
}

/* Submits what is prepared and sleeps until something completes. */
static int enter(struct ring *ring) {
  atomic_store_explicit(word_at(ring->rings, ring->params.sq_off.tail), ring->tail,
                        memory_order_release);
  unsigned flags = IORING_ENTER_GETEVENTS;
  void *argument = NULL;
  size_t bytes = 0;
#ifdef FOREBAY_TESTING
  struct __kernel_timespec second = {.tv_sec = 1};
  struct io_uring_getevents_arg timed = {.ts = (uint64_t)(uintptr_t)&second};
  flags |= IORING_ENTER_EXT_ARG;
  argument = &timed;
  bytes = sizeof timed;
#endif
  long submitted =
      syscall(__NR_io_uring_enter, ring->fd, ring->to_submit, 1, flags, argument, bytes);
  if (submitted < 0) {
    return errno;
  }
  ring->to_submit -= (uint32_t)submitted;
  return 0;
}

static bool passing(int failed) {
  return failed == 0 || failed == EINTR || failed == EAGAIN || failed == EBUSY || failed == ETIME;
}

static void loop(struct ring *ring, struct committer *c) {
  prepare_bell(ring);
  bool woken = true;
  for (;;) {
    /* Only the watchdog of test builds ends a wait without a completion: it looks twice before it takes. */
    if (woken) {
      take_all(ring, c);
    }
    bool parks = c->in_flight < c->depth;
    if (parks && c->in_flight == 0 && atomic_load(&c->stopping)) {
      return;
    }
    if (parks && woken) {
      committer_park(c);
    }
    int failed = enter(ring);
    if (!passing(failed)) {
      /* The ring itself is broken: what was submitted may still be written, and nobody will know. */
      c->in_flight = 0;
      committer_fail(c, failed);
      return;
    }
    bool completed = reap(ring, c);
    if (!woken && !completed && parks) {
      committer_missed(c);
    }
    woken = completed || !woken;
    if (woken) {
      atomic_store(&c->control->parked.value, 0);
    }
  }
}

static void *run(void *argument) {
  struct start *start = argument;
  struct committer *c = start->committer;
  struct ring ring;
  pthread_setname_np(pthread_self(), "forebay-uring");
  start->failed = open_ring(&ring, c);
  bool opened = start->failed == 0;
  /* `start` is gone once the starting thread goes on. */
  sem_post(&start->ready);
  if (opened) {
    loop(&ring, c);
    /* The kernel takes a ring apart later; the lock is to be free as soon as it is released. */
    register_with(&ring, IORING_UNREGISTER_FILES, NULL, 0);
    close_ring(&ring);
  }
  return NULL;
}

static int start_thread(struct committer *c) {
  struct start start = {.committer = c};
  sem_init(&start.ready, 0, 0);
  int failed = pthread_create(&c->threads[0], NULL, run, &start);
  if (failed == 0) {
    while (sem_wait(&start.ready) != 0) {
    }
    failed = start.failed;
    if (failed != 0) {
      pthread_join(c->threads[0], NULL);
    } else {
      c->thread_count = 1;
    }
  }
  sem_destroy(&start.ready);
  return failed;
}

const struct backend uring_backend = {"uring", start_thread};
