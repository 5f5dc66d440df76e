// Which of the waiting requests of a tenant runs next; ties by arrival.
#pragma once

namespace dunlin {

enum class SchedulePolicy {
  kFcfs,      // the first to arrive
  kPriority,  // the lowest EngineRequest::priority
  kPrefix,    // the one with most of its prompt in the prefix cache
};

}  // namespace dunlin
