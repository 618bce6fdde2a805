/* What every function of the door needs: errors as Node has them, numbers that were looked at. */
#include "door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

napi_value throw_type(napi_env env, const char *message) {
  napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message);
  return NULL;
}

napi_value throw_range(napi_env env, const char *message) {
  napi_throw_range_error(env, "ERR_OUT_OF_RANGE", message);
  return NULL;
}

/* The names Node gives these errors; anything else is told by its number. */
const char *error_name(int number) {
  switch (number) {
  case EBADF:
    return "EBADF";
  case EAGAIN:
    return "EAGAIN";
  case EDQUOT:
    return "EDQUOT";
  case EINTR:
    return "EINTR";
  case EINVAL:
    return "EINVAL";
  case EIO:
    return "EIO";
  case ENOLCK:
    return "ENOLCK";
  case ENOMEM:
    return "ENOMEM";
  case ENOSPC:
    return "ENOSPC";
  case ENOSYS:
    return "ENOSYS";
  case EOPNOTSUPP:
    return "EOPNOTSUPP";
  case EPERM:
    return "EPERM";
  case EROFS:
    return "EROFS";
  default:
    return "UNKNOWN";
  }
}

/* Throws an Error with `code` and `errno`, as Node's own system errors have them. */
napi_value throw_system(napi_env env, int number, const char *call) {
  const char *name = error_name(number);
  char text[160];
  snprintf(text, sizeof text, "%s: %s, %s", name, strerror(number), call);

  napi_value code, message, error, value;
  if (napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &code) == napi_ok &&
      napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message) == napi_ok &&
      napi_create_error(env, code, message, &error) == napi_ok &&
      napi_create_int32(env, -number, &value) == napi_ok &&
      napi_set_named_property(env, error, "errno", value) == napi_ok) {
    napi_throw(env, error);
  }
  return NULL;
}

/* A whole number in [0, max]; false when `value` is none. */
int whole_number(napi_env env, napi_value value, double max, double *out) {
  double number;
  if (napi_get_value_double(env, value, &number) != napi_ok) {
    return 0;
  }
  if (!(number >= 0 && number <= max) || number != (double)(uint64_t)number) {
    return 0;
  }
  *out = number;
  return 1;
}

int add_function(napi_env env, napi_value exports, const char *name, napi_callback function) {
  napi_value value;
  return napi_create_function(env, name, NAPI_AUTO_LENGTH, function, NULL, &value) == napi_ok &&
         napi_set_named_property(env, exports, name, value) == napi_ok;
}
