// Chooses the implementation for the processor it runs on.
#include "core/crc32c.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace stoker {
namespace {

#if defined(__x86_64__)
bool has_crc_instruction() {
  return __builtin_cpu_supports("sse4.2") != 0;
}
constexpr Crc32cImplementation kHardware{"sse4.2", crc32c_extend_sse42};
#elif defined(__aarch64__)
#if defined(__linux__)
bool has_crc_instruction() {
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
#else
bool has_crc_instruction() {
  return true;
}  // every 64-bit Apple processor has it
#endif
constexpr Crc32cImplementation kHardware{"armv8 crc", crc32c_extend_arm64};
#else
bool has_crc_instruction() {
  return false;
}
constexpr Crc32cImplementation kHardware{"", nullptr};
#endif

constexpr Crc32cImplementation kFastestFirst[] = {kHardware, {"portable", crc32c_extend_portable}};

}  // namespace

std::span<const Crc32cImplementation> crc32c_implementations() {
  static const size_t unusable = has_crc_instruction() ? 0 : 1;
  return std::span(kFastestFirst).subspan(unusable);
}

uint32_t crc32c_extend(uint32_t crc, std::span<const uint8_t> data) {
  static const Crc32cFunction fastest = crc32c_implementations().front().extend;
  return fastest(crc, data.data(), data.size());
}

}  // namespace stoker
