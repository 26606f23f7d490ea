// Loops that step over blocks, or decode only what is wanted of them, against those that decode everything.
#include "core/jpeg/region/entropy_kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

#include "core/jpeg/region/frame_header.h"
#include "tests/jpeg/region_decoding.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/rounds.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

// The scan of a baseline file up to its first restart marker, and where its blocks go.
struct Scan {
  HuffmanCache tables;
  EntropyScan entropy;
  FrameReader headers;
  std::vector<McuBlock> mcu;
  size_t count = 0;
  std::vector<std::vector<int16_t>> values;
  std::vector<std::vector<uint8_t>> last;

  bool open(const Bytes& file, bool wide, int32_t end) {
    if (!headers.open(file)) return false;
    const FrameHeader& frame = headers.frame();
    count = static_cast<size_t>(frame.mcu_columns() * frame.mcu_rows());
    if (frame.restart_interval != 0) count = std::min<size_t>(count, frame.restart_interval);
    entropy.wide_skips = wide;
    for (size_t i = 0; i < frame.components; ++i) {
      entropy.dc[i] = tables.find(frame.dc[frame.component[i].dc], HuffmanClass::kDc);
      entropy.ac[i] = tables.find(frame.ac[frame.component[i].ac], HuffmanClass::kAc);
      if (entropy.dc[i] == nullptr || entropy.ac[i] == nullptr) return false;
      entropy.ac[i]->build_skips(wide ? HuffmanDecoder::kWideSkipWindow : HuffmanDecoder::kSkipWindow);
      entropy.most[i] = 1 << 14;
      for (int32_t k = 0; k < frame.across_of(i) * frame.down_of(i); ++k) {
        values.emplace_back(count * kBlockValues);
        last.emplace_back(count);
        mcu.push_back({.component = i, .step = 1, .end = static_cast<uint8_t>(i == 0 ? end : 63)});
      }
    }
    for (size_t i = 0; i < mcu.size(); ++i) {
      mcu[i].values = values[i].data();
      mcu[i].last = last[i].data();
    }
    entropy.restart(headers.scan().data);
    return true;
  }

  // Bytes of data that are left.
  int64_t left() { return entropy.reader.at_end() ? 0 : -1; }
};

TEST_CASE("blocks that are stepped over, or decoded in part, have the verdict and the values of a decode") {
  std::mt19937 random(31);
  size_t good = 0, bad = 0;
  for (int round = 0; round < 400 / tests::kThinned; ++round) {
    const Extent size{8 + static_cast<int32_t>(random() % 90), 8 + static_cast<int32_t>(random() % 60)};
    const int qualities[] = {5, 50, 92, 100};
    const tests::ReferenceSpec spec{.quality = qualities[random() % 4],
                                    .across = 1 + round % 2,
                                    .down = 1 + round / 2 % 2,
                                    .restart_interval = round % 3 == 0 ? 7 : 0,
                                    .optimised = random() % 2 == 0};
    auto file = tests::reference_jpeg(
        random() % 2 == 0 ? tests::noise(size, 3, random()) : tests::waves(size, 3, round), size, 3, spec);
    if (round % 2 == 1) file[file.size() * 3 / 4] ^= static_cast<uint8_t>(1U << random() % 8);
    CAPTURE(round);
    for (const EntropyKernels* kernels : entropy_kernels()) {
      CAPTURE(kernels->name);
      const auto whole = std::make_unique<Scan>();
      if (!whole->open(file, false, 63)) continue;
      const bool decodes =
          kernels->decode(whole->entropy, whole->mcu.data(), whole->mcu.size(), whole->count);
      ++(decodes ? good : bad);
      for (const bool wide : {false, true}) {
        CAPTURE(wide);
        const auto skipped = std::make_unique<Scan>();
        REQUIRE(skipped->open(file, wide, 63));
        REQUIRE(kernels->skip(skipped->entropy, skipped->mcu.data(), skipped->mcu.size(), skipped->count) ==
                decodes);
        if (decodes) CHECK(skipped->left() == whole->left());
        for (const int32_t end : {0, 1, 4, 24, 62}) {
          CAPTURE(end);
          const auto low = std::make_unique<Scan>();
          REQUIRE(low->open(file, wide, end));
          REQUIRE(kernels->decode_low(low->entropy, low->mcu.data(), low->mcu.size(), low->count) == decodes);
          if (!decodes) continue;
          CHECK(low->left() == whole->left());
          bool same = true;
          for (size_t i = 0; i < low->mcu.size(); ++i) {
            for (size_t k = 0; k < low->values[i].size(); ++k) {
              const auto* at = std::find(std::begin(kZigzag), std::end(kZigzag), k % kBlockValues);
              if (at - std::begin(kZigzag) > low->mcu[i].end) continue;
              same = same && low->values[i][k] == whole->values[i][k];
            }
          }
          REQUIRE(same);
        }
      }
    }
  }
  CHECK(good > 200 / tests::kThinned);
  CHECK(bad >= 20 / tests::kThinned);
}

// A code as a segment gives it, and the code of each symbol. Symbols in random order: the first `skewed` of
// them have codes of 1, 2, 3... bits, the others of one length.
struct RandomCode {
  HuffmanCode code;
  std::vector<uint8_t> symbols;
  std::array<uint32_t, 256> bits{}, lengths{};

  RandomCode(std::vector<uint8_t> all, size_t skewed, std::mt19937& random) : symbols(std::move(all)) {
    std::shuffle(symbols.begin(), symbols.end(), random);
    const auto others = static_cast<size_t>(std::bit_width(symbols.size()));
    uint32_t next = 0;
    for (size_t i = 0, length = 0; i < symbols.size(); ++i, ++next) {
      const size_t own = i < skewed ? i + 1 : skewed + others;
      next <<= own - length;
      length = own;
      ++code.counts[own - 1];
      code.symbols[i] = symbols[i];
      bits[symbols[i]] = next;
      lengths[symbols[i]] = static_cast<uint32_t>(own);
    }
  }

  // Those of short codes more often than others.
  uint8_t pick(std::mt19937& random) const {
    const size_t among = random() % 2 == 0 ? symbols.size() : 1 + random() % symbols.size();
    return symbols[random() % among];
  }
};

// Bits of a scan, with a marker behind them.
struct ScanBits {
  Bytes bytes;
  uint64_t pending = 0;
  uint32_t count = 0;

  void put(uint32_t value, uint32_t size) {
    pending = pending << size | value;
    for (count += size; count >= 8; count -= 8) {
      bytes.push_back(static_cast<uint8_t>(pending >> (count - 8)));
      if (bytes.back() == 0xFF) bytes.push_back(0);
    }
  }
  int32_t put(const RandomCode& code, uint8_t symbol, uint32_t following) {
    const uint32_t size = symbol & 15;
    const uint32_t value = following & ((1U << size) - 1);
    put(code.bits[symbol], code.lengths[symbol]);
    put(value, size);
    return extend(value, size);
  }
  void end() {
    while (count != 0) put(1, 1);
    bytes.insert(bytes.end(), {0xFF, 0xD9});
  }
};

TEST_CASE("values are read as they were written with any code, however long it and what follows it are") {
  std::mt19937 random(47);
  std::vector<uint8_t> differences, steps{0x00, 0xF0};
  for (uint8_t size = 0; size < 12; ++size) differences.push_back(size);
  for (uint8_t run : {0, 1, 7}) {
    for (uint8_t size = 1; size < 15; ++size) steps.push_back(static_cast<uint8_t>(run << 4 | size));
  }
  constexpr size_t kBlocks = 150;
  for (int round = 0; round < 100 / tests::kThinned; ++round) {
    CAPTURE(round);
    const RandomCode dc(differences, random() % 12, random), ac(steps, random() % 11, random);
    ScanBits scan;
    std::vector<int16_t> written(kBlocks * kBlockValues);
    int32_t brightness = 0;
    for (size_t i = 0; i < kBlocks; ++i) {
      int16_t* const values = written.data() + i * kBlockValues;
      // A first bit of 0 makes it less, of 1 more: so it stays near 0.
      const uint8_t size = dc.pick(random);
      const uint32_t first = brightness < 0 ? (1U << size) >> 1 : 0;
      brightness += scan.put(dc, size, first | (static_cast<uint32_t>(random()) & ((1U << size) - 1) >> 1));
      values[0] = static_cast<int16_t>(brightness);
      for (uint32_t at = 0; at < kBlockValues - 1;) {
        const uint8_t symbol = ac.pick(random);
        const uint32_t after = at + (symbol >> 4) + 1;
        if (symbol == 0 || after >= kBlockValues || (symbol == 0xF0 && after == kBlockValues - 1)) {
          scan.put(ac, 0, 0);
          break;
        }
        at = after;
        values[kZigzag[at]] = static_cast<int16_t>(scan.put(ac, symbol, static_cast<uint32_t>(random())));
      }
    }
    scan.end();
    HuffmanCache tables;
    for (const EntropyKernels* kernels : entropy_kernels()) {
      CAPTURE(kernels->name);
      std::vector<int16_t> values;
      std::vector<uint8_t> last(kBlocks);
      const auto entropy = std::make_unique<EntropyScan>();
      const auto reads = [&](auto kernel, uint8_t end) {
        values.assign(kBlocks * kBlockValues, 0);
        const McuBlock mcu{
            .component = 0, .values = values.data(), .last = last.data(), .step = 1, .end = end};
        entropy->restart(scan.bytes);
        return kernel(*entropy, &mcu, 1, kBlocks) && entropy->reader.at_end() &&
               entropy->reader.before_marker();
      };
      entropy->dc[0] = tables.find(dc.code, HuffmanClass::kDc);
      entropy->ac[0] = tables.find(ac.code, HuffmanClass::kAc);
      REQUIRE(entropy->dc[0] != nullptr);
      REQUIRE(entropy->ac[0] != nullptr);
      entropy->most[0] = 1 << 14;
      REQUIRE(reads(kernels->decode, 63));
      REQUIRE(values == written);
      for (const bool wide : {false, true}) {
        CAPTURE(wide);
        entropy->wide_skips = wide;
        entropy->ac[0]->build_skips(wide ? HuffmanDecoder::kWideSkipWindow : HuffmanDecoder::kSkipWindow);
        REQUIRE(reads(kernels->skip, 63));
        for (const uint8_t end : {0, 1, 4, 24, 62}) {
          CAPTURE(end);
          REQUIRE(reads(kernels->decode_low, end));
          bool same = true;
          for (size_t k = 0; k < values.size(); ++k) {
            const auto* at = std::find(std::begin(kZigzag), std::end(kZigzag), k % kBlockValues);
            same = same && (at - std::begin(kZigzag) > end || values[k] == written[k]);
          }
          REQUIRE(same);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker
