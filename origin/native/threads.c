/*
 * The backend of blocking writes: as many threads as batches in flight, each takes one, writes it with RWF_DSYNC and
 * comes back. Invariant, under `lock`: while a thread is idle and nothing is left to take, `parked` is 1.
 */
#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "committer.h"

static void write_out(struct committer *c, struct flight *flight, int fd) {
  bool more;
  do {
    struct iovec rest = {flight->base + flight->done, flight->bytes - flight->done};
    pthread_mutex_unlock(&c->lock);
    PAUSE(c, pause_write);
    ssize_t written = pwritev2(fd, &rest, 1, (off_t)(flight->position + flight->done), RWF_DSYNC);
    int64_t result = written < 0 ? -errno : written;
    pthread_mutex_lock(&c->lock);
    more = committer_wrote(c, flight, result);
  } while (more);
}

static void sleep_until_rung(struct committer *c) {
  uint64_t rung;
#ifdef FOREBAY_TESTING
  struct pollfd bell = {c->bell, POLLIN, 0};
  for (uint32_t seconds = 0; poll(&bell, 1, 1000) == 0; seconds++) {
    if (seconds % 2 == 1) {
      committer_missed(c);
    }
  }
#endif
  ssize_t got;
  do {
    got = read(c->bell, &rung, sizeof rung);
  } while (got < 0 && errno == EINTR);
}

static void *run(void *argument) {
  struct committer *c = argument;
  pthread_setname_np(pthread_self(), "forebay-write");
  pthread_mutex_lock(&c->lock);
  for (;;) {
    struct flight *flight = committer_take(c);
    if (flight != NULL) {
#ifndef WITHOUT_WAKE_NEXT
      if (c->idle > 0) {
        committer_park(c);
      }
#endif
      write_out(c, flight, c->fd);
      continue;
    }
    if (atomic_load(&c->stopping)) {
      break;
    }
    c->idle++;
    committer_park(c);
    pthread_mutex_unlock(&c->lock);
    sleep_until_rung(c);
    pthread_mutex_lock(&c->lock);
    c->idle--;
  }
#ifndef WITHOUT_WAKE_STOP_NEXT
  committer_ring(c);
#endif
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

static int start(struct committer *c) {
  for (uint32_t i = 0; i < c->depth; i++) {
    int failed = pthread_create(&c->threads[i], NULL, run, c);
    if (failed != 0) {
      /* Those that run are stopped as a whole. */
      atomic_store(&c->stopping, true);
      committer_ring(c);
      for (uint32_t j = 0; j < i; j++) {
        pthread_join(c->threads[j], NULL);
      }
      return failed;
    }
    c->thread_count = i + 1;
  }
  return 0;
}

const struct backend threads_backend = {"threads", start};
