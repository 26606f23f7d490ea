// Reading mapped files, and noticing that a file does not give its bytes.
//
// A read of mapped memory whose file was cut short, or whose medium fails, gets SIGBUS, which ends the
// process. One handler for the process turns such signals of guarded reads into an answer, and passes all
// others on to the handler that was there before it.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace stoker {

// Whether reads can be guarded now. The first call installs the handler. False where another handler was
// installed since, which would get the signals first; true again when that is gone. Takes a system call.
bool can_guard() noexcept;

// Calls `read(what)`. False if `mapped` could not be read, and `read` was left in the middle. Also false,
// with nothing done, where memory is missing. Only where can_guard() has been true.
bool run_guarded(std::span<const uint8_t> mapped, void (*read)(void*), void* what) noexcept;

// The same for a function object. It may be left at any read of `mapped`: it must not throw, take memory or a
// lock, or make anything that has a destructor.
template <typename Read>
bool guarded(std::span<const uint8_t> mapped, Read read) noexcept {
  static_assert(std::is_trivially_destructible_v<Read>);
  return run_guarded(mapped, [](void* what) { (*static_cast<Read*>(what))(); }, &read);
}

}  // namespace stoker
