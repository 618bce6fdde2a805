#ifndef FOREBAY_DOOR_H
#define FOREBAY_DOOR_H

#include <node_api.h>
#include <stdint.h>

napi_value throw_type(napi_env env, const char *message);
napi_value throw_range(napi_env env, const char *message);
/* Throws an Error with `code` and `errno`, as Node's own system errors have them. */
napi_value throw_system(napi_env env, int number, const char *call);
/* The name Node gives an errno; "UNKNOWN" for the rare ones. */
const char *error_name(int number);
/* A whole number in [0, max]; 0 when `value` is none. */
int whole_number(napi_env env, napi_value value, double max, double *out);
/* Puts a function into `exports`; 0 when Node would not. */
int add_function(napi_env env, napi_value exports, const char *name, napi_callback function);

#endif
