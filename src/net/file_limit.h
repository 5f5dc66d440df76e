// How many descriptors this process may have open.
#pragma once

namespace dunlin {

// Raises the soft limit (usually 1024) to at least `wanted`, as far as the hard limit allows, and
// gives what the limit is now. Every connection is a descriptor.
int raise_file_limit(int wanted);

}  // namespace dunlin
