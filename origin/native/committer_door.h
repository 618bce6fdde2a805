#ifndef FOREBAY_COMMITTER_DOOR_H
#define FOREBAY_COMMITTER_DOOR_H

#include <node_api.h>

/* Adds `openCommitter` and the functions on what it returns; 0 when that fails. */
int committer_exports(napi_env env, napi_value exports);

#endif
