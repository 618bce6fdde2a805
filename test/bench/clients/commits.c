/*
 * Bare commits, one after the other: what a durable append cannot be faster than.
 *
 *   commits FILE SECONDS
 *
 * Each is one write of 4 KiB with O_DIRECT and RWF_DSYNC into a file whose extents were written before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { block = 4096, blocks = 4096, room = 1000000 };

static void fail(const char *what) {
  fprintf(stderr, "commits: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t nanos(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: commits FILE SECONDS\n");
    return 64;
  }
  uint64_t span = (uint64_t)(atof(argv[2]) * 1e9);
  int fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  char *bytes = aligned_alloc(block, (size_t)block * 256);
  uint32_t *latencies = malloc(room * sizeof *latencies);
  if (fd < 0 || bytes == NULL || latencies == NULL) {
    fail(argv[1]);
  }
  memset(bytes, 'x', (size_t)block * 256);
  for (int at = 0; at < blocks; at += 256) {
    if (pwrite(fd, bytes, (size_t)block * 256, (off_t)at * block) < 0) {
      fail("write");
    }
  }
  fdatasync(fd);
  size_t done = 0;
  uint64_t begun = nanos(), now = begun;
  while (now - begun < span && done < room) {
    uint64_t before = now;
    struct iovec one = {.iov_base = bytes, .iov_len = block};
    if (pwritev2(fd, &one, 1, (off_t)(done % blocks) * block, RWF_DSYNC) != block) {
      fail("commit");
    }
    now = nanos();
    latencies[done++] = (uint32_t)((now - before) / 1000);
  }
  qsort(latencies, done, sizeof *latencies, by_size);
  printf("{\"requests\":%zu,\"perSecond\":%.1f,\"p50Us\":%u,\"p99Us\":%u}\n", done,
         (double)done / ((double)(now - begun) / 1e9), latencies[done / 2], latencies[done * 99 / 100]);
  return 0;
}
