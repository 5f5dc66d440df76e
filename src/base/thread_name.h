// What `top -H`, gdb and perf call a thread.
#pragma once

#include <pthread.h>

namespace dunlin {

// `name`: at most 15 characters.
inline void name_this_thread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace dunlin
