#include "core/base/kernels.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace stoker {

bool has(InstructionSet set) {
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

}  // namespace stoker
