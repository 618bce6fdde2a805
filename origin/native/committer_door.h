#ifndef FOREBAY_COMMITTER_DOOR_H
#define FOREBAY_COMMITTER_DOOR_H

#include <node_api.h>

/* Adds `openCommitter` and the functions on what it returns; 0 when that fails. */
int committer_exports(napi_env env, napi_value exports);

struct committer;

/* The open committer that is the first of `count` arguments; NULL when an error was thrown. */
struct committer *committer_of(napi_env env, napi_callback_info info, size_t count,
                               napi_value *arguments);

#ifdef FOREBAY_TESTING
/* What test builds offer beside the door; see testing.c. */
int testing_exports(napi_env env, napi_value exports);
#endif

#endif
