/* A committer's memory and threads, from their beginning to their end. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "committer.h"

void committer_release(struct committer *c) {
  if (atomic_fetch_sub(&c->owners, 1) != 1) {
    return;
  }
  munmap(c->areas[0].base, c->areas[0].bytes * c->areas_kept);
  if (c->bell >= 0) {
    close(c->bell);
  }
  pthread_mutex_destroy(&c->lock);
  free(c->control);
  free(c->descriptors);
  free(c);
}

bool committer_map_area(struct committer *c, uint32_t index, uint32_t count, size_t bytes) {
  void *base = mmap(NULL, bytes * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    c->areas[index + i] = (struct area){(uint8_t *)base + bytes * i, bytes};
  }
  if (index + count > atomic_load(&c->area_count)) {
    atomic_store(&c->area_count, index + count);
  }
  return true;
}

struct committer *committer_allocate(uint32_t areas, size_t area_bytes) {
  struct committer *c = calloc(1, sizeof *c);
  if (c == NULL) {
    return NULL;
  }
  c->owners = 1;
  c->bell = eventfd(0, EFD_CLOEXEC);
  c->control = aligned_alloc(64, sizeof *c->control);
  c->descriptors = calloc((size_t)ring_slots * fields, sizeof(double));
  pthread_mutex_init(&c->lock, NULL);
  if (c->bell < 0 || c->control == NULL || c->descriptors == NULL ||
      !committer_map_area(c, 0, areas, area_bytes)) {
    if (c->bell >= 0) {
      close(c->bell);
    }
    free(c->control);
    free(c->descriptors);
    free(c);
    return NULL;
  }
  memset(c->control, 0, sizeof *c->control);
  c->areas_kept = areas;
  c->fd = -1;
#ifdef FOREBAY_TESTING
  c->fault_after = -1;
#endif
  return c;
}

void committer_stop(struct committer *c) {
  if (c->thread_count == 0) {
    return;
  }
  atomic_store(&c->stopping, true);
#ifndef WITHOUT_WAKE_STOP
  committer_ring(c);
#endif
  for (uint32_t i = 0; i < c->thread_count; i++) {
    pthread_join(c->threads[i], NULL);
  }
  c->thread_count = 0;
}
