/*
 * The committer's door to JavaScript. A committer is an external value; it lives until `committerClose`, or until the
 * environment goes down, which waits for what is in flight. Its memory lives on while an ArrayBuffer shows it.
 */
#include "committer_door.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "committer.h"
#include "door.h"

struct handle {
  struct committer *committer;
  napi_threadsafe_function wakes;
  bool open;
};

static const napi_type_tag handle_tag = {0x4f5e8a4c1d3b4e21, 0x9ab7c3d1e0f45566};

/* A large area whose batches are all done, as JavaScript would not have let go of it else. */
static void on_area_gone(napi_env env, void *data, void *hint) {
  (void)env;
  struct committer *c = hint;
  uint32_t count = atomic_load(&c->area_count);
  for (uint32_t i = c->areas_kept; i < count; i++) {
    if (c->areas[i].base == data) {
      munmap(data, c->areas[i].bytes);
      c->areas[i] = (struct area){NULL, 0};
    }
  }
  committer_release(c);
}

static void on_buffer_gone(napi_env env, void *data, void *hint) {
  (void)env;
  (void)data;
  committer_release(hint);
}

static void on_environment_end(void *data) {
  struct handle *handle = data;
  if (handle->open) {
    handle->open = false;
    committer_stop(handle->committer);
  }
}

static void on_handle_gone(napi_env env, void *data, void *hint) {
  (void)hint;
  struct handle *handle = data;
  if (handle->open) {
    napi_remove_env_cleanup_hook(env, on_environment_end, handle);
    handle->open = false;
    committer_stop(handle->committer);
  }
  committer_release(handle->committer);
  free(handle);
}

/* On a committer's thread. */
static void wake_javascript(void *data) {
  napi_call_threadsafe_function(data, NULL, napi_tsfn_nonblocking);
}

/* On JavaScript's thread. */
static void on_wake(napi_env env, napi_value callback, void *context, void *data) {
  (void)context;
  (void)data;
  napi_value undefined;
  if (env != NULL && callback != NULL && napi_get_undefined(env, &undefined) == napi_ok) {
    napi_call_function(env, undefined, callback, 0, NULL, NULL);
  }
}

static bool set(napi_env env, napi_value object, const char *name, napi_value value) {
  return napi_set_named_property(env, object, name, value) == napi_ok;
}

/* An ArrayBuffer over memory of the committer; `gone` releases it. */
static napi_value show(napi_env env, struct committer *c, struct area what, napi_finalize gone) {
  napi_value buffer;
  atomic_fetch_add(&c->owners, 1);
  if (napi_create_external_arraybuffer(env, what.base, what.bytes, gone, c, &buffer) != napi_ok) {
    gone(env, what.base, c);
    return NULL;
  }
  return buffer;
}

static napi_value show_all(napi_env env, struct committer *c, napi_value external) {
  napi_value result, control, descriptors, memory;
  struct area words = {(uint8_t *)c->control, sizeof *c->control};
  struct area ring = {(uint8_t *)c->descriptors, sizeof(double) * ring_slots * fields};
  struct area kept = {c->areas[0].base, c->areas[0].bytes * c->areas_kept};
  control = show(env, c, words, on_buffer_gone);
  descriptors = show(env, c, ring, on_buffer_gone);
  memory = show(env, c, kept, on_buffer_gone);
  if (control == NULL || descriptors == NULL || memory == NULL ||
      napi_create_object(env, &result) != napi_ok || !set(env, result, "handle", external) ||
      !set(env, result, "control", control) || !set(env, result, "descriptors", descriptors) ||
      !set(env, result, "memory", memory)) {
    return NULL;
  }
  return result;
}

static bool make_wakes(napi_env env, struct handle *handle, napi_value callback) {
  napi_value name;
  if (napi_create_string_utf8(env, "forebay:committer", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, callback, NULL, name, 0, 1, NULL, NULL, NULL, on_wake,
                                      &handle->wakes) != napi_ok) {
    return false;
  }
  napi_unref_threadsafe_function(env, handle->wakes);
  handle->committer->wake = wake_javascript;
  handle->committer->wake_argument = handle->wakes;
  return true;
}

/* Whether all `count` arguments are whole numbers of at least 1 and at most their `max`. */
static bool counts(napi_env env, const napi_value *arguments, uint32_t count, const double *max,
                   double *out) {
  for (uint32_t i = 0; i < count; i++) {
    if (!whole_number(env, arguments[i], max[i], &out[i])) {
      return false;
    }
  }
  return true;
}

enum opening { o_threads, o_depth, o_areas, o_area_bytes, o_term, o_seq, o_crc, o_lock, o_count };

static napi_value open_with(napi_env env, struct handle *handle, napi_value callback) {
  struct committer *c = handle->committer;
  napi_value external, result;
  if (napi_create_external(env, handle, on_handle_gone, NULL, &external) != napi_ok) {
    committer_release(c);
    free(handle);
    return NULL;
  }
  if (napi_type_tag_object(env, external, &handle_tag) != napi_ok ||
      !make_wakes(env, handle, callback)) {
    return NULL;
  }
  int failed = c->backend->start(c);
  if (failed != 0) {
    napi_release_threadsafe_function(handle->wakes, napi_tsfn_abort);
    return throw_system(env, failed, c->backend->name);
  }
  handle->open = true;
  napi_add_env_cleanup_hook(env, on_environment_end, handle);
  result = show_all(env, c, external);
  return result;
}

/*
 * (backend: 0 uring | 1 threads, depth, areas, areaBytes, term, seq, crc, lock, onWake)
 *   → { handle, control, descriptors, memory }, or throws what the system refused it with
 */
static napi_value js_open(napi_env env, napi_callback_info info) {
  static const double max[o_count] = {1, depth_max, 64, 1 << 30, 9007199254740991.0,
                                      9007199254740991.0, 4294967295.0, 2147483648.0};
  size_t count = o_count + 1;
  napi_value arguments[o_count + 1];
  double n[o_count];
  napi_valuetype type;
  if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != napi_ok || count <= o_count ||
      !counts(env, arguments, o_count, max, n) ||
      napi_typeof(env, arguments[o_count], &type) != napi_ok || type != napi_function ||
      n[o_depth] < 1 || n[o_areas] < 1 || n[o_area_bytes] < block_bytes ||
      (uint64_t)n[o_area_bytes] % block_bytes != 0) {
    return throw_type(env, "openCommitter(backend, depth, areas, areaBytes, term, seq, crc, lock, onWake)");
  }
  struct handle *handle = calloc(1, sizeof *handle);
  struct committer *c = committer_allocate((uint32_t)n[o_areas], (size_t)n[o_area_bytes]);
  if (handle == NULL || c == NULL) {
    free(handle);
    if (c != NULL) {
      committer_release(c);
    }
    return throw_system(env, ENOMEM, "openCommitter");
  }
  handle->committer = c;
  c->backend = n[o_threads] == 0 ? &uring_backend : &threads_backend;
  c->depth = (uint32_t)n[o_depth];
  c->term = (uint64_t)n[o_term];
  c->seq = c->durable_seq = (uint64_t)n[o_seq];
  c->previous_crc = (uint32_t)n[o_crc];
  c->lock_fd = (int)n[o_lock] - 1;
  return open_with(env, handle, arguments[o_count]);
}

/* The open committer that is the first of `count` arguments. */
static struct handle *handle_of(napi_env env, napi_callback_info info, size_t count,
                                napi_value *arguments) {
  size_t given = count;
  void *data;
  bool tagged = false;
  if (napi_get_cb_info(env, info, &given, arguments, NULL, NULL) != napi_ok || given < count ||
      napi_check_object_type_tag(env, arguments[0], &handle_tag, &tagged) != napi_ok || !tagged ||
      napi_get_value_external(env, arguments[0], &data) != napi_ok) {
    throw_type(env, "expected a committer first, and all arguments");
    return NULL;
  }
  struct handle *handle = data;
  if (!handle->open) {
    throw_type(env, "the committer is closed");
    return NULL;
  }
  return handle;
}

struct committer *committer_of(napi_env env, napi_callback_info info, size_t count,
                               napi_value *arguments) {
  struct handle *handle = handle_of(env, info, count, arguments);
  return handle == NULL ? NULL : handle->committer;
}

/* (handle): the doorbell, for whoever found `parked` 1 and made it 0. */
static napi_value js_ring(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct committer *c = committer_of(env, info, 1, arguments);
  if (c != NULL) {
    atomic_fetch_add(&c->control->bells.value, 1);
#ifndef WITHOUT_WAKE_DOORBELL
    committer_ring(c);
#endif
  }
  return NULL;
}

/* (handle, fd, salt): the file of what is published from now on. Everything published must be durable. */
static napi_value js_use(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  double n[2];
  static const double max[2] = {2147483647.0, 4294967295.0};
  struct committer *c = committer_of(env, info, 3, arguments);
  if (c == NULL) {
    return NULL;
  }
  if (!counts(env, arguments + 1, 2, max, n)) {
    return throw_type(env, "committerUse(handle, fd, salt) takes whole numbers");
  }
  if (atomic_load(&c->control->durable.value) != atomic_load(&c->control->published.value)) {
    return throw_range(env, "committerUse: the old file's batches are not durable yet");
  }
  c->fd = (int)n[0];
  c->salt = (uint32_t)n[1];
  c->file_version++;
  return NULL;
}

/* (handle, bytes) → { index, memory }: one more area, for a batch too large for those there are. */
static napi_value js_allocate(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  double bytes;
  struct committer *c = committer_of(env, info, 2, arguments);
  if (c == NULL) {
    return NULL;
  }
  if (!whole_number(env, arguments[1], 1 << 30, &bytes) || bytes < block_bytes) {
    return throw_type(env, "committerAllocate(handle, bytes) takes a whole number");
  }
  size_t whole = ((size_t)bytes + block_bytes - 1) / block_bytes * block_bytes;
  uint32_t index = c->areas_kept;
  while (index < areas_max && c->areas[index].base != NULL) {
    index++;
  }
  if (index == areas_max || !committer_map_area(c, index, 1, whole)) {
    return throw_system(env, ENOMEM, "committerAllocate");
  }
  napi_value result, number, memory = show(env, c, c->areas[index], on_area_gone);
  if (memory == NULL || napi_create_uint32(env, index, &number) != napi_ok ||
      napi_create_object(env, &result) != napi_ok || !set(env, result, "index", number) ||
      !set(env, result, "memory", memory)) {
    return NULL;
  }
  return result;
}

/* (handle, boolean): whether the process stays alive for its wakes. */
static napi_value js_hold(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  bool held;
  struct handle *handle = handle_of(env, info, 2, arguments);
  if (handle == NULL) {
    return NULL;
  }
  if (napi_get_value_bool(env, arguments[1], &held) != napi_ok) {
    return throw_type(env, "committerHold(handle, held) takes a boolean");
  }
  if (held) {
    napi_ref_threadsafe_function(env, handle->wakes);
  } else {
    napi_unref_threadsafe_function(env, handle->wakes);
  }
  return NULL;
}

/* (handle): ends the threads; waits for what is in flight. */
static napi_value js_close(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct handle *handle = handle_of(env, info, 1, arguments);
  if (handle != NULL) {
    handle->open = false;
    napi_remove_env_cleanup_hook(env, on_environment_end, handle);
    committer_stop(handle->committer);
    napi_release_threadsafe_function(handle->wakes, napi_tsfn_abort);
  }
  return NULL;
}

/* (errno) → the name Node gives it */
static napi_value js_error_name(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument, result;
  double number;
  if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) != napi_ok || count < 1 ||
      !whole_number(env, argument, 4095, &number)) {
    return throw_type(env, "errorName(errno) takes a whole number");
  }
  const char *name = error_name((int)number);
  return napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &result) == napi_ok ? result : NULL;
}

int committer_exports(napi_env env, napi_value exports) {
  static const struct {
    const char *name;
    napi_callback function;
  } functions[] = {
      {"openCommitter", js_open},     {"committerRing", js_ring},   {"committerUse", js_use},
      {"committerAllocate", js_allocate}, {"committerHold", js_hold}, {"committerClose", js_close},
      {"errorName", js_error_name},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (!add_function(env, exports, functions[i].name, functions[i].function)) {
      return 0;
    }
  }
  return 1;
}
