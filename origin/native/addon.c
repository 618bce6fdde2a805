/*
 * The addon's door to JavaScript, in plain Node-API. Functions are small and hold no policy. Whatever
 * they are given, they answer with a value or throw a TypeError, RangeError or system error: a wrong
 * argument never ends the process.
 */
#include <errno.h>
#include <node_api.h>
#include <sys/file.h>
#include <unistd.h>

#include "committer_door.h"
#include "crc32c.h"
#include "door.h"

typedef uint32_t (*crc_function)(uint32_t, const uint8_t *, size_t);

/* (bytes: Uint8Array, offset, length, seed) → number */
static napi_value crc_of(napi_env env, napi_callback_info info, crc_function function) {
  size_t count = 4;
  napi_value arguments[4];
  if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != napi_ok) {
    return NULL;
  }
  napi_typedarray_type type;
  size_t size;
  void *data;
  bool is_typed_array = false;
  if (count < 4 || napi_is_typedarray(env, arguments[0], &is_typed_array) != napi_ok ||
      !is_typed_array ||
      napi_get_typedarray_info(env, arguments[0], &type, &size, &data, NULL, NULL) != napi_ok ||
      type != napi_uint8_array) {
    return throw_type(env, "crc32c(bytes, offset, length, seed) takes a Uint8Array first");
  }
  double offset, length, seed;
  if (!whole_number(env, arguments[1], (double)size, &offset) ||
      !whole_number(env, arguments[2], (double)size - offset, &length)) {
    return throw_range(env, "crc32c: offset and length must lie within the bytes");
  }
  if (!whole_number(env, arguments[3], 4294967295.0, &seed)) {
    return throw_range(env, "crc32c: seed must be an unsigned 32-bit number");
  }
  /* An empty array may have no memory at all. */
  uint32_t crc = length == 0 ? (uint32_t)seed
                             : function((uint32_t)seed, (const uint8_t *)data + (size_t)offset,
                                        (size_t)length);
  napi_value result;
  return napi_create_uint32(env, crc, &result) == napi_ok ? result : NULL;
}

static napi_value js_crc32c(napi_env env, napi_callback_info info) {
  return crc_of(env, info, crc32c);
}

static napi_value js_crc32c_software(napi_env env, napi_callback_info info) {
  return crc_of(env, info, crc32c_software);
}

static int file_descriptor(napi_env env, napi_callback_info info, int *fd) {
  size_t count = 1;
  napi_value argument;
  double number;
  if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) != napi_ok || count < 1 ||
      !whole_number(env, argument, 2147483647.0, &number)) {
    throw_type(env, "a file descriptor is a whole number of at least 0");
    return 0;
  }
  *fd = (int)number;
  return 1;
}

/* (fd) → true when the exclusive lock was taken, false when another process holds it. */
static napi_value js_flock(napi_env env, napi_callback_info info) {
  int fd;
  if (!file_descriptor(env, info, &fd)) {
    return NULL;
  }
  int failed;
  do {
    failed = flock(fd, LOCK_EX | LOCK_NB);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0 && errno != EWOULDBLOCK) {
    return throw_system(env, errno, "flock");
  }
  napi_value result;
  return napi_get_boolean(env, failed == 0, &result) == napi_ok ? result : NULL;
}

/* (fd): everything written to the file system that holds `fd` is on the device. Blocks. */
static napi_value js_syncfs(napi_env env, napi_callback_info info) {
  int fd;
  if (!file_descriptor(env, info, &fd)) {
    return NULL;
  }
  if (syncfs(fd) != 0) {
    return throw_system(env, errno, "syncfs");
  }
  return NULL;
}

NAPI_MODULE_INIT() {
  crc32c_choose();
  napi_value variant;
  if (add_function(env, exports, "crc32c", js_crc32c) &&
      add_function(env, exports, "crc32cSoftware", js_crc32c_software) &&
      add_function(env, exports, "flock", js_flock) &&
      add_function(env, exports, "syncfs", js_syncfs) && committer_exports(env, exports) &&
      napi_create_string_utf8(env, crc32c_variant(), NAPI_AUTO_LENGTH, &variant) == napi_ok) {
    napi_set_named_property(env, exports, "crc32cVariant", variant);
  }
#ifdef FOREBAY_TESTING
  testing_exports(env, exports);
#endif
  return exports;
}
