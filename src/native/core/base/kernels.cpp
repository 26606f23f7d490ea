#include "core/base/kernels.h"

#include <cstdlib>
#include <iterator>
#include <string>

#include "core/base/errors.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace stoker {
namespace {

// A level includes those before it.
struct Level {
  const char* name;
  InstructionSet needs;
  InstructionSet also[2];  // where the processor has them
};
constexpr Level kLevels[] = {
    {"portable", InstructionSet::kAny, {}},
#if defined(__x86_64__)
    {"sse42", InstructionSet::kSse42, {}},
    {"avx2", InstructionSet::kAvx2, {InstructionSet::kBmi2, InstructionSet::kVpclmul}},
    {"avx512", InstructionSet::kAvx512, {}},
#elif defined(__aarch64__)
    {"neon", InstructionSet::kNeon, {InstructionSet::kArmCrc}},
#endif
};

bool processor_has(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAny:
      return true;
#if defined(__x86_64__)
    case InstructionSet::kSse42:
      return __builtin_cpu_supports("sse4.2") != 0;
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
    case InstructionSet::kBmi2:
      return __builtin_cpu_supports("bmi2") != 0;
    case InstructionSet::kVpclmul:
      return __builtin_cpu_supports("vpclmulqdq") != 0;
    case InstructionSet::kAvx512:  // VBMI leaves out processors that lower their clock for wide products
      return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
             __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512vbmi") != 0;
#elif defined(__aarch64__)
    case InstructionSet::kNeon:
      return true;
    case InstructionSet::kArmCrc:
#if defined(__linux__)
      return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
      return true;  // every 64-bit Apple processor has it
#endif
#endif
    default:
      return false;
  }
}

// The number of those of kLevels that may run.
size_t usable_levels() {
  size_t there = 1;
  while (there < std::size(kLevels) && processor_has(kLevels[there].needs)) ++there;
  const char* asked = std::getenv("STOKER_KERNELS");
  if (asked == nullptr || *asked == '\0') return there;
  std::string names;
  for (size_t i = 0; i < there; ++i) {
    if (std::string(asked) == kLevels[i].name) return i + 1;
    names += (i == 0 ? "" : i + 1 == there ? " or " : ", ") + std::string(kLevels[i].name);
  }
  std::string shown = asked;
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  throw Error(ErrorCode::kBadArgument, "the environment variable STOKER_KERNELS is '" + shown +
                                           "'; on this machine it may be " + names);
}

size_t levels() {
  static const size_t count = usable_levels();
  return count;
}

}  // namespace

const char* kernel_level() {
  return kLevels[levels() - 1].name;
}

bool has(InstructionSet set) {
  for (size_t i = 0; i < levels(); ++i) {
    const Level& level = kLevels[i];
    if (set == level.needs || set == level.also[0] || set == level.also[1]) return processor_has(set);
  }
  return false;
}

}  // namespace stoker
