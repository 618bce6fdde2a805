/*
 * What only test builds have (FOREBAY_TESTING): writes that are said to have failed, sleeps between the steps of parking, and
 * a kernel that refuses io_uring. Nothing of it is in the addon that is shipped.
 */
#ifdef FOREBAY_TESTING
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "committer.h"
#include "committer_door.h"
#include "door.h"

/* (handle, pause, µs): see `enum pause` */
static napi_value js_pause(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  double step, us;
  struct committer *c = committer_of(env, info, 3, arguments);
  if (c != NULL && whole_number(env, arguments[1], pauses - 1, &step) &&
      whole_number(env, arguments[2], 10e6, &us)) {
    atomic_store(&c->pause_us[(int)step], (uint32_t)us);
  }
  return NULL;
}

/* (handle, after, result): after `after` more writes, one is said to have returned `result` bytes or a negative errno. */
static napi_value js_fault(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  double after;
  int64_t result;
  struct committer *c = committer_of(env, info, 3, arguments);
  if (c != NULL && whole_number(env, arguments[1], 1e6, &after) &&
      napi_get_value_int64(env, arguments[2], &result) == napi_ok) {
    atomic_store(&c->fault_result, result);
    atomic_store(&c->fault_after, (int32_t)after);
  }
  return NULL;
}

/* (errno): what io_uring_setup is refused with from now on; 0: as the kernel likes. */
static napi_value js_refuse_setup(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  double number;
  if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) == napi_ok && count == 1 &&
      whole_number(env, argument, 4095, &number)) {
    atomic_store(&setup_refusal, (int)number);
  }
  return NULL;
}

/* (): the kernel itself refuses io_uring_setup with EPERM to this process from now on, as containers do. */
static napi_value js_seccomp(napi_env env, napi_callback_info info) {
  (void)info;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    return throw_system(env, errno, "seccomp");
  }
  return NULL;
}

int testing_exports(napi_env env, napi_value exports) {
  static const struct {
    const char *name;
    napi_callback function;
  } functions[] = {
      {"testPause", js_pause},
      {"testFault", js_fault},
      {"testRefuseSetup", js_refuse_setup},
      {"testSeccomp", js_seccomp},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (!add_function(env, exports, functions[i].name, functions[i].function)) {
      return 0;
    }
  }
  return 1;
}
#else
typedef int nothing_to_compile;
#endif
