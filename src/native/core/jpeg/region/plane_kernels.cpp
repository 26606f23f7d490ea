// The kernels in plain C++, which all others equal bit for bit, and which ones this processor runs.
#include "core/jpeg/region/plane_kernels.h"

#include <cstring>

#include "core/base/kernels.h"
#include "core/jpeg/region/plane_loops.h"

namespace stoker {
namespace {

constexpr uint32_t fixed(double x) {
  return static_cast<uint32_t>(x * (1 << kFractionBits) + 0.5);
}

// Values that no encoder makes lead to sums of more than 16 bits. libjpeg's vector units clip them on x86-64;
// on ARM64 they drop the upper bits after the first pass, and round after the second without an overflow.
#if defined(__aarch64__)
constexpr bool kSumsWrap = true;
#else
constexpr bool kSumsWrap = false;
#endif

int16_t between_passes(uint32_t sum) {
  constexpr int kShift = kFractionBits - kKeptBits;
  const int32_t rounded = static_cast<int32_t>(sum + (1U << (kShift - 1))) >> kShift;
  return static_cast<int16_t>(kSumsWrap ? rounded : clamped(rounded, -32768, 32767));
}

uint8_t pixel_of(uint32_t sum) {
  constexpr int kShift = kFractionBits + kKeptBits + 3;
  const int32_t rounded = kSumsWrap ? ((static_cast<int32_t>(sum) >> (kShift - 2)) + 2) >> 2
                                    : static_cast<int32_t>(sum + (1U << (kShift - 1))) >> kShift;
  return static_cast<uint8_t>(clamped(rounded, -128, 127) + 128);
}

// One pass over 8 lines at once: in[k * 8 + line] -> out(k, line, sum). Values that no encoder makes wrap
// around where vector units do.
template <typename Out>
void pass(const int16_t (&in)[64], const Out& out) {
  for (int line = 0; line < 8; ++line) {
    const auto at = [&](int k) { return static_cast<uint32_t>(int32_t{in[k * 8 + line]}); };
    const auto word = [](uint32_t value) {
      return static_cast<uint32_t>(int32_t{static_cast<int16_t>(static_cast<uint16_t>(value))});
    };
    const uint32_t turned = (at(2) + at(6)) * fixed(0.541196100);
    const uint32_t even2 = turned - at(6) * fixed(1.847759065), even3 = turned + at(2) * fixed(0.765366865);
    const uint32_t even0 = word(at(0) + at(4)) << kFractionBits, even1 = word(at(0) - at(4)) << kFractionBits;
    const uint32_t sums[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};

    const uint32_t z3 = word(at(7) + at(3)), z4 = word(at(5) + at(1)), z5 = (z3 + z4) * fixed(1.175875602);
    const uint32_t a = z5 - z3 * fixed(1.961570560), b = z5 - z4 * fixed(0.390180644);
    const uint32_t c = (at(7) + at(1)) * fixed(0.899976223), d = (at(5) + at(3)) * fixed(2.562915447);
    const uint32_t odd[4] = {at(1) * fixed(1.501321110) - c + b, at(3) * fixed(3.072711026) - d + a,
                             at(5) * fixed(2.053119869) - d + b, at(7) * fixed(0.298631336) - c + a};
    for (int k = 0; k < 4; ++k) {
      out(k, line, sums[k] + odd[k]);
      out(7 - k, line, sums[k] - odd[k]);
    }
  }
}

void one_block(const int16_t* values, const uint16_t* quant, uint8_t* out, size_t stride) {
  int16_t in[64], between[64];
  for (int i = 0; i < 64; ++i) in[i] = static_cast<int16_t>(static_cast<uint16_t>(values[i] * quant[i]));
  // Down the columns first; the result is turned, so that the second pass goes down columns again.
  if (has_one_row(values)) {
    for (int i = 0; i < 64; ++i)
      between[i] = static_cast<int16_t>(static_cast<uint16_t>(in[i / 8] * (1 << kKeptBits)));
  } else {
    pass(in, [&](int row, int column, uint32_t sum) { between[column * 8 + row] = between_passes(sum); });
  }
  pass(between, [&](int column, int row, uint32_t sum) {
    out[static_cast<size_t>(row) * stride + static_cast<size_t>(column)] = pixel_of(sum);
  });
}

void inverse_dct(int16_t* values, size_t blocks, const uint8_t* last, const uint16_t* quant, uint8_t* out,
                 size_t stride) {
  for (size_t i = 0; i < blocks; ++i) {
    if (last[i] == 0) {
      const int color = color_of(values[i * 64], quant);
      for (size_t row = 0; row < 8; ++row) std::memset(out + row * stride + i * 8, color, 8);
    } else {
      one_block(values + i * 64, quant, out + i * 8, stride);
    }
  }
  std::memset(values, 0, blocks * 64 * sizeof *values);
}

uint8_t clip(int value) {
  return static_cast<uint8_t>(clamped(value, 0, 255));
}

void to_rgbx(const uint8_t* __restrict y, const uint8_t* __restrict cb, const uint8_t* __restrict cr,
             size_t n, uint8_t* __restrict out) {
  constexpr int kHalf = 1 << 15;
  for (size_t i = 0; i < n; ++i) {
    const int blue = cb[i] - 128, red = cr[i] - 128;
    out[4 * i] = clip(y[i] + ((91881 * red + kHalf) >> 16));
    out[4 * i + 1] = clip(y[i] + ((-22554 * blue - 46802 * red + kHalf) >> 16));
    out[4 * i + 2] = clip(y[i] + ((116130 * blue + kHalf) >> 16));
    out[4 * i + 3] = 255;
  }
}

constexpr PlaneKernels kPortablePlaneKernels{"portable",   inverse_dct, small_inverse_dct, double_columns,
                                             between_rows, double_both, to_rgbx,           grey_to_rgbx};

}  // namespace

#if defined(__x86_64__)
extern const PlaneKernels kAvx512PlaneKernels;
extern const PlaneKernels kAvx2PlaneKernels;
#endif

const std::vector<const PlaneKernels*>& plane_kernels() {
  static const auto list = runnable<PlaneKernels>({
#if defined(__x86_64__)
      {InstructionSet::kAvx512, &kAvx512PlaneKernels},
      {InstructionSet::kAvx2, &kAvx2PlaneKernels},
#endif
      {InstructionSet::kAny, &kPortablePlaneKernels},
  });
  return list;
}

}  // namespace stoker
