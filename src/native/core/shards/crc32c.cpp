// Chooses the implementation for the processor it runs on.
#include "core/shards/crc32c.h"

#include "core/shards/crc32c_polynomial.h"

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
constexpr Crc32cImplementation kHardware{"sse4.2", crc32c_extend_sse42, crc32c_copy_sse42};
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
constexpr Crc32cImplementation kHardware{"armv8 crc", crc32c_extend_arm64, crc32c_copy_arm64};
#else
bool has_crc_instruction() {
  return false;
}
constexpr Crc32cImplementation kHardware{"", nullptr, nullptr};
#endif

constexpr Crc32cImplementation kFastestFirst[] = {kHardware,
                                                  {"portable", crc32c_extend_portable, crc32c_copy_portable}};

}  // namespace

std::span<const Crc32cImplementation> crc32c_implementations() {
  static const size_t unusable = has_crc_instruction() ? 0 : 1;
  return std::span(kFastestFirst).subspan(unusable);
}

// Feeding is linear, and inverting the register at both ends cancels out: `crc` is what the others find in
// the register, moved on by as many zero bytes.
uint32_t crc32c_join(uint32_t crc, uint32_t others, uint64_t size) {
  return crc32c_polynomial::multiply(crc, crc32c_polynomial::zero_bytes(size)) ^ others;
}

uint32_t crc32c_extend(uint32_t crc, std::span<const uint8_t> data) {
  static const Crc32cFunction fastest = crc32c_implementations().front().extend;
  return fastest(crc, data.data(), data.size());
}

uint32_t crc32c_copy(uint32_t crc, std::span<const uint8_t> data, uint8_t* out) {
  static const Crc32cCopyFunction fastest = crc32c_implementations().front().copy;
  return fastest(crc, data.data(), data.size(), out);
}

}  // namespace stoker
