#include "core/jpeg/entropy_encoder.h"

#include <bit>
#include <cstring>

#include "core/jpeg/markers.h"
#include "core/jpeg/region/entropy_kernels.h"

namespace stoker {
namespace {

constexpr size_t kMostTokens = 64;  // of a block
constexpr uint32_t kIndexBits = 16, kIndexMask = (1U << kIndexBits) - 1;
constexpr uint32_t kLengthBits = 5, kLengthMask = (1U << kLengthBits) - 1;
constexpr uint32_t kSizeBits = 4;  // of an AC symbol: how many additional bits
constexpr int32_t kZeroRun = 0xF0;
constexpr int32_t kLongestRun = 15;

// Bits of positions in zigzag order, for the values of a row that are not zero.
using RowPositions = std::array<std::array<uint64_t, 256>, 8>;
constexpr RowPositions positions_of_rows() {
  RowPositions positions{};
  for (size_t position = 0; position < kBlockValues; ++position) {
    const size_t row = kZigzag[position] / 8, column = kZigzag[position] % 8;
    for (size_t values = 0; values < 256; ++values) {
      if ((values >> column & 1) != 0) positions[row][values] |= uint64_t{1} << position;
    }
  }
  return positions;
}
constexpr RowPositions kRowPositions = positions_of_rows();

using Row [[gnu::vector_size(16)]] = int16_t;
using RowBytes [[gnu::vector_size(8)]] = int8_t;

// Which values of a block are not zero, in zigzag order.
uint64_t positions_of(const int16_t* values) {
  constexpr uint64_t kOnes = 0x0101010101010101, kGather = 0x0102040810204080;
  uint64_t positions = 0;
  for (size_t i = 0; i < 8; ++i) {
    Row row;
    std::memcpy(&row, values + 8 * i, sizeof row);
    const RowBytes there = __builtin_convertvector(row != 0, RowBytes);
    uint64_t bytes;
    std::memcpy(&bytes, &there, sizeof bytes);
    positions |= kRowPositions[i][(bytes & kOnes) * kGather >> 56];
  }
  return positions;
}

struct Magnitude {
  uint32_t size;  // bits
  uint32_t bits;
};

// Additional bits (T.81 F.1.2.1): of a negative value those of it less one.
Magnitude magnitude_of(int32_t value) {
  const int32_t sign = value >> 31;
  const auto size = static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>((value ^ sign) - sign)));
  return {size, static_cast<uint32_t>(value + sign) & ((1U << size) - 1)};
}

constexpr uint32_t token(uint32_t index, uint32_t bits) {
  return index | bits << kIndexBits;
}

// The most significant bit first, a zero byte behind each of ones.
class BitWriter {
 public:
  explicit BitWriter(uint8_t* to) : to_(to) {}

  void put(uint64_t bits, int length) {
    free_ -= length;
    if (free_ >= 0) {
      word_ = word_ << length | bits;
      return;
    }
    word_ = word_ << (length + free_) | bits >> -free_;
    write_word();
    word_ = bits;
    free_ += 64;
  }

  // Fills up the last byte with ones.
  uint8_t* finish() {
    const int missing = free_ % 8;
    put((1U << missing) - 1, missing);
    for (int left = 64 - free_; left > 0; left -= 8) write_byte(static_cast<uint8_t>(word_ >> (left - 8)));
    return to_;
  }

 private:
  void write_byte(uint8_t byte) {
    *to_++ = byte;
    if (byte == 0xFF) *to_++ = 0;
  }
  void write_word() {
    constexpr uint64_t kOnes = 0x0101010101010101, kHighest = 0x8080808080808080;
    if ((word_ & ~(word_ + kOnes) & kHighest) == 0) {  // no byte of ones
      const uint64_t first_byte_first = __builtin_bswap64(word_);
      std::memcpy(to_, &first_byte_first, sizeof first_byte_first);
      to_ += sizeof first_byte_first;
      return;
    }
    for (int left = 64; left > 0; left -= 8) write_byte(static_cast<uint8_t>(word_ >> (left - 8)));
  }

  uint8_t* to_;
  uint64_t word_ = 0;
  int free_ = 64;  // bits of the word
};

}  // namespace

void EntropyEncoder::start(size_t components, size_t blocks) {
  sets_ = components == 1 ? 1 : kSets;
  tokens_ = std::make_unique_for_overwrite<uint32_t[]>(blocks * kMostTokens);
  end_ = tokens_.get();
  restarts_.clear();
  predictions_.fill(0);
  counts_.fill(0);
}

void EntropyEncoder::add(const int16_t* values, size_t component) {
  const uint32_t dc_table = component == 0 ? 0 : 2 * kHuffmanSymbols, ac_table = dc_table + kHuffmanSymbols;
  uint32_t* end = end_;
  const auto put = [&](uint32_t index, uint32_t bits) {
    ++counts_[index];
    *end++ = token(index, bits);
  };
  const Magnitude difference = magnitude_of(values[0] - predictions_[component]);
  predictions_[component] = values[0];
  put(dc_table + difference.size, difference.bits);

  int32_t last = 0;
  for (uint64_t left = positions_of(values) & ~uint64_t{1}; left != 0; left &= left - 1) {
    const int32_t position = std::countr_zero(left);
    int32_t run = position - last - 1;
    last = position;
    for (; run > kLongestRun; run -= kLongestRun + 1) put(ac_table + kZeroRun, 0);
    const Magnitude value = magnitude_of(values[kZigzag[position]]);
    put(ac_table + (static_cast<uint32_t>(run) << kSizeBits | value.size), value.bits);
  }
  if (last != static_cast<int32_t>(kBlockValues) - 1) put(ac_table, 0);  // end of block
  end_ = end;
}

void EntropyEncoder::restart() {
  restarts_.push_back(static_cast<size_t>(end_ - tokens_.get()));
  predictions_.fill(0);
}

void EntropyEncoder::make_tables() {
  const std::span<const uint32_t> counts = counts_;
  for (size_t set = 0; set < sets_; ++set) {
    const auto of_set = counts.subspan(2 * set * kHuffmanSymbols);
    tables_[set].dc = optimal_huffman(of_set.first<kHuffmanSymbols>());
    tables_[set].ac = optimal_huffman(of_set.subspan<kHuffmanSymbols, kHuffmanSymbols>());
  }
}

void EntropyEncoder::write(std::vector<uint8_t>& to) {
  // For each index a code with room for its additional bits, above the length of both.
  uint64_t bits = 0;
  for (size_t table = 0; table < 2 * sets_; ++table) {
    const HuffmanCode& huffman = table % 2 == 0 ? tables_[table / 2].dc : tables_[table / 2].ac;
    uint32_t code = 0;
    for (uint32_t length = 1, i = 0; length <= huffman.counts.size(); ++length, code <<= 1) {
      for (uint32_t left = huffman.counts[length - 1]; left > 0; --left, ++code) {
        const uint32_t symbol = huffman.symbols[i++], more = symbol & ((1U << kSizeBits) - 1);
        const size_t index = table * kHuffmanSymbols + symbol;
        codes_[index] = code << (more + kLengthBits) | (length + more);
        bits += uint64_t{counts_[index]} * (length + more);
      }
    }
  }
  const size_t before = to.size();
  constexpr size_t kStuffed = 2, kOfRestart = 2 + 2;  // a marker, and a byte that is not full
  to.resize(before + kStuffed * (bits / 8 + 1) + kOfRestart * restarts_.size());

  uint8_t* out = to.data() + before;
  const uint32_t* next = tokens_.get();
  const auto segment = [&](const uint32_t* end) {
    BitWriter writer(out);
    for (; next != end; ++next) {
      const uint32_t code = codes_[*next & kIndexMask];
      writer.put((code >> kLengthBits) + (*next >> kIndexBits), static_cast<int>(code & kLengthMask));
    }
    out = writer.finish();
  };
  size_t number = 0;
  for (const size_t end : restarts_) {
    segment(tokens_.get() + end);
    *out++ = 0xFF;
    *out++ = static_cast<uint8_t>(kRst0 + number++ % 8);
  }
  segment(end_);
  to.resize(static_cast<size_t>(out - to.data()));
}

}  // namespace stoker
