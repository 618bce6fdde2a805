/*
 * Many SSE readers and one writer, one thread, epoll:
 *
 *   readers PORT STREAM COUNT SECONDS
 *
 * Opens COUNT readers at the tail of STREAM (text/plain), prints "ready", waits for a line, and then writes one
 * message after the other, each when every reader has the one before. A message holds the time it was sent at, so
 * a reader knows how long it was under way. Last line: JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A message is '@', digits, ';', wherever it stands in a response. */
struct reader {
  int fd;
  int digits; /* -1 outside of a message */
  uint64_t value;
  uint64_t newest;
  int opened;
};

static struct reader *readers;
static int count, opened, behind, epoll;
static uint32_t *latencies;
static size_t deliveries, room;
static uint64_t current;

static void fail(const char *what) {
  fprintf(stderr, "readers: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t clock_nanos(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t nanos(void) {
  return clock_nanos(CLOCK_MONOTONIC);
}

static int dial(int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
    fail("connect");
  }
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

static void send_all(int fd, const char *text) {
  size_t length = strlen(text);
  if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length) {
    fail("send");
  }
}

static void delivered(struct reader *reader) {
  if (reader->value == current && reader->newest != current) {
    if (deliveries < room) {
      latencies[deliveries] = (uint32_t)((nanos() - current) / 1000);
    }
    deliveries++;
    behind--;
  }
  reader->newest = reader->value;
}

static void scan(struct reader *reader, const char *bytes, ssize_t length) {
  for (ssize_t i = 0; i < length; i++) {
    char c = bytes[i];
    if (c == '@') {
      reader->digits = 0;
      reader->value = 0;
    } else if (reader->digits >= 0 && c >= '0' && c <= '9') {
      reader->digits++;
      reader->value = reader->value * 10 + (uint64_t)(c - '0');
    } else {
      if (c == ';' && reader->digits > 0) {
        delivered(reader);
      }
      reader->digits = -1;
    }
  }
}

static void pump(int timeout_ms) {
  static char bytes[65536];
  struct epoll_event events[256];
  int ready = epoll_wait(epoll, events, 256, timeout_ms);
  for (int i = 0; i < ready; i++) {
    struct reader *reader = &readers[events[i].data.u32];
    ssize_t got = recv(reader->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
      fail("a reader's connection ended");
    }
    if (got > 0 && !reader->opened) {
      if (memcmp(bytes, "HTTP/1.1 200", 12) != 0) {
        fail("a reader was not answered 200");
      }
      reader->opened = 1;
      opened++;
    }
    scan(reader, bytes, got);
  }
}

/* One answer, whose head comes in one piece and which has no body that matters. */
static void append(int fd, const char *stream) {
  char text[512], body[64], answer[4096];
  current = nanos();
  int length = snprintf(body, sizeof body, "@%020llu; and a few words more.\n", (unsigned long long)current);
  snprintf(text, sizeof text,
           "POST /v1/stream/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
           "Content-Length: %d\r\n\r\n%s",
           stream, length, body);
  behind = count;
  send_all(fd, text);
  uint64_t until = nanos() + 10000000000u;
  while (behind > 0) {
    pump(100);
    if (nanos() > until) {
      errno = ETIMEDOUT;
      fail("a message did not reach all readers");
    }
  }
  ssize_t got = recv(fd, answer, sizeof answer, 0);
  if (got < 12 || memcmp(answer, "HTTP/1.1 20", 11) != 0) {
    fail("an append was refused");
  }
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: readers PORT STREAM COUNT SECONDS\n");
    return 64;
  }
  int port = atoi(argv[1]);
  count = atoi(argv[3]);
  uint64_t span = (uint64_t)(atof(argv[4]) * 1e9);
  readers = calloc((size_t)count, sizeof *readers);
  room = 20000000;
  latencies = malloc(room * sizeof *latencies);
  epoll = epoll_create1(EPOLL_CLOEXEC);
  char request[512];
  snprintf(request, sizeof request,
           "GET /v1/stream/%s?offset=now&live=sse HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", argv[2]);
  for (int i = 0; i < count; i++) {
    readers[i] = (struct reader){.fd = dial(port), .digits = -1};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    epoll_ctl(epoll, EPOLL_CTL_ADD, readers[i].fd, &event);
    send_all(readers[i].fd, request);
  }
  uint64_t until = nanos() + 30000000000u;
  while (opened < count) {
    pump(100);
    if (nanos() > until) {
      errno = ETIMEDOUT;
      fail("not all readers were answered");
    }
  }
  printf("ready\n");
  fflush(stdout);
  if (getchar() == EOF) {
    return 1;
  }
  int writer = dial(port);
  append(writer, argv[2]);
  deliveries = 0;
  uint64_t begun = nanos(), busy = clock_nanos(CLOCK_PROCESS_CPUTIME_ID), now;
  size_t messages = 0;
  do {
    append(writer, argv[2]);
    messages++;
    now = nanos();
  } while (now - begun < span);
  busy = clock_nanos(CLOCK_PROCESS_CPUTIME_ID) - busy;
  size_t kept = deliveries < room ? deliveries : room;
  qsort(latencies, kept, sizeof *latencies, by_size);
  printf("{\"messages\":%zu,\"deliveries\":%zu,\"perSecond\":%.1f,\"p50Us\":%u,\"p99Us\":%u,"
         "\"clientCpuUs\":%.3f}\n",
         messages, deliveries, (double)deliveries / ((double)(now - begun) / 1e9), latencies[kept / 2],
         latencies[kept * 99 / 100], (double)busy / 1e3 / (double)deliveries);
  return 0;
}
