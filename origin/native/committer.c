/* What all backends share: taking, composing, advancing in order, parking, failing. */
#include "committer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crc32c.h"

enum { format_version = 1, batch_magic = 0x54414246 /* "FBAT" */ };

static void put16(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)value;
  at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value) {
  put16(at, value);
  put16(at + 2, value >> 16);
}

static void put64(uint8_t *at, uint64_t value) {
  put32(at, (uint32_t)value);
  put32(at + 4, (uint32_t)(value >> 32));
}

static bool has_failed(struct committer *c) {
  return atomic_load(&c->control->failed.value) != 0;
}

static uint32_t published(struct committer *c) {
  return atomic_load(&c->control->published.value);
}

/* Completes the batch in place: header and padding as origin/journal/FORMAT.md draws them. */
static void compose(struct committer *c, struct flight *flight, const double *d) {
  uint8_t *base = flight->base;
  uint32_t end = (uint32_t)d[f_end];
  uint32_t length = end - header_bytes;
  memset(base + end, 0, flight->bytes - end);
  put32(base, batch_magic);
  put16(base + 4, format_version);
  put16(base + 6, (uint32_t)d[f_flags]);
  put64(base + 8, (uint64_t)d[f_generation]);
  put64(base + 16, c->term);
  put64(base + 24, ++c->seq);
  put64(base + 32, (uint64_t)d[f_lsn]);
  put64(base + 40, c->durable_seq);
  put32(base + 48, length);
  put32(base + 52, (uint32_t)d[f_entries]);
  put32(base + 56, c->previous_crc);
  put32(base + 60, crc32c(0, base + header_bytes, length));
  c->previous_crc = crc32c(c->salt, base, header_bytes - 4);
  put32(base + 64, c->previous_crc);
}

/* Whether a descriptor speaks of memory and places that exist; doubles that are no numbers are not. */
static bool valid(struct committer *c, const double *d) {
  return d[f_area] >= 0 && d[f_area] < (double)atomic_load(&c->area_count) &&
         d[f_end] >= header_bytes && d[f_end] <= (double)c->areas[(uint32_t)d[f_area]].bytes &&
         d[f_position] >= block_bytes && d[f_position] < 9007199254740992.0 &&
         (uint64_t)d[f_position] % block_bytes == 0 && d[f_lsn] >= 0 &&
         d[f_lsn] < 9007199254740992.0 && d[f_generation] >= 0 &&
         d[f_generation] < 9007199254740992.0 && d[f_entries] >= 0 && d[f_entries] < 4294967296.0 &&
         d[f_flags] >= 0 && d[f_flags] < 65536.0;
}

bool committer_has_more(struct committer *c) {
  return c->taken != published(c) && !has_failed(c);
}

struct flight *committer_take(struct committer *c) {
  if (c->in_flight == c->depth || !committer_has_more(c)) {
    return NULL;
  }
  const double *d = c->descriptors + (size_t)(c->taken % ring_slots) * fields;
  if (!valid(c, d)) {
    committer_fail(c, EINVAL);
    return NULL;
  }
  struct flight *flight = &c->flights[c->taken % ring_slots];
  uint32_t end = (uint32_t)d[f_end];
  *flight = (struct flight){
      .base = c->areas[(uint32_t)d[f_area]].base,
      .bytes = (end + block_bytes - 1) / block_bytes * block_bytes,
      .position = (uint64_t)d[f_position],
      .area = (uint32_t)d[f_area],
  };
  compose(c, flight, d);
  c->taken++;
  c->in_flight++;
  return flight;
}

/* One wake, however much became known before JavaScript comes to look. */
static void wake(struct committer *c) {
  if (atomic_exchange(&c->control->waking.value, 1) == 0) {
    atomic_fetch_add(&c->control->wakes.value, 1);
    c->wake(c->wake_argument);
  }
}

static void advance(struct committer *c) {
  uint32_t before = atomic_load(&c->control->durable.value);
  uint32_t durable = before;
  while (durable != c->taken && c->flights[durable % ring_slots].complete) {
    c->flights[durable % ring_slots].complete = false;
    durable++;
    c->durable_seq++;
  }
  if (durable != before) {
    atomic_store(&c->control->durable.value, durable);
#ifndef WITHOUT_WAKE_DURABLE
    wake(c);
#endif
  }
}

/* After a failure: nothing is in flight any more. */
static void note_quiet(struct committer *c) {
  if (c->in_flight == 0) {
    atomic_store(&c->control->quiet.value, 1);
#ifndef WITHOUT_WAKE_QUIET
    wake(c);
#endif
  }
}

void committer_fail(struct committer *c, int number) {
  if (has_failed(c)) {
    return;
  }
  atomic_store(&c->control->quiet.value, c->in_flight == 0);
  atomic_store(&c->control->failed.value, (uint32_t)number);
#ifndef WITHOUT_WAKE_FAILED
  wake(c);
#endif
}

#ifdef FOREBAY_TESTING
static int64_t faulted(struct committer *c, int64_t result) {
  int32_t after = atomic_load(&c->fault_after);
  if (after < 0) {
    return result;
  }
  atomic_store(&c->fault_after, after - 1);
  return after == 0 ? atomic_load(&c->fault_result) : result;
}
#else
#define faulted(c, result) (result)
#endif

bool committer_wrote(struct committer *c, struct flight *flight, int64_t result) {
  result = faulted(c, result);
  if (result == -EINTR || result == -EAGAIN) {
    return true;
  }
  if (result >= 0) {
    /* A short write goes on at the last whole block, as O_DIRECT demands. */
    uint32_t reached = flight->done + (uint32_t)result;
    reached = reached < flight->bytes ? reached - reached % block_bytes : reached;
    if (reached > flight->done && reached < flight->bytes) {
      flight->done = reached;
      return true;
    }
    if (reached <= flight->done) {
      result = -EIO;
    }
  }
  bool failed_before = has_failed(c);
  if (failed_before) {
    PAUSE(c, pause_after_failure);
  }
  c->in_flight--;
  if (result < 0) {
    committer_fail(c, (int)-result);
  } else {
    flight->complete = true;
    advance(c);
  }
  if (failed_before) {
    note_quiet(c);
  }
  return false;
}

void committer_ring(struct committer *c) {
  uint64_t one = 1;
  ssize_t written;
  do {
    written = write(c->bell, &one, sizeof one);
  } while (written < 0 && errno == EINTR);
}

void committer_park(struct committer *c) {
  PAUSE(c, pause_before_parked);
  atomic_store(&c->control->parked.value, 1);
  PAUSE(c, pause_parked);
#ifndef WITHOUT_REREAD
  if (committer_has_more(c) && atomic_exchange(&c->control->parked.value, 0) == 1) {
    committer_ring(c);
  }
#endif
  PAUSE(c, pause_before_sleep);
}

void committer_missed(struct committer *c) {
  if (committer_has_more(c)) {
    fputs("forebay: a committer slept for a second with batches published\n", stderr);
    abort();
  }
}

#ifdef FOREBAY_TESTING
void committer_pause(struct committer *c, enum pause step) {
  uint32_t us = atomic_load(&c->pause_us[step]);
  if (us > 0) {
    usleep(us);
  }
}
#endif
