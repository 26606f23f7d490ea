// How often a test tries what it draws or counts through: with a sanitizer, or on an emulated processor, a
// fifth as often. A plain build compares the values of all of it.
#pragma once

namespace stoker::tests {

#if defined(STOKER_SANITIZE_ADDRESS) || defined(STOKER_SANITIZE_THREAD) || defined(STOKER_EMULATED)
inline constexpr int kThinned = 5;
#else
inline constexpr int kThinned = 1;
#endif

}  // namespace stoker::tests
