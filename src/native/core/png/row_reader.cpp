#include "core/png/row_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/png/chunks.h"

namespace stoker {
namespace {

// Bytes that are inflated at once: so many that zlib's copy of 32 KB each time does not matter, but few
// enough for a second-level cache.
constexpr size_t kLinesBytes = size_t{64} << 10;
// zlib counts in 32 bits.
constexpr size_t kMostAtOnce = size_t{1} << 30;
// The largest window, whatever the data claim: some writers claim less than they use.
constexpr int kWindowBits = 15;

voidpf allocate(voidpf, uInt items, uInt size) {
  return ::operator new(size_t{items} * size, std::nothrow);
}

void release(voidpf, voidpf memory) {
  ::operator delete(memory);
}

}  // namespace

struct PngRowReader::Inflater {
  z_stream stream = {};
  bool ended = false;

  Inflater() {
    stream.zalloc = allocate;
    stream.zfree = release;
    if (inflateInit2(&stream, kWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Prepares for another stream, whose checksum is verified if `sums`.
  void reset(bool sums) {
    inflateReset(&stream);
    inflateValidate(&stream, sums ? 1 : 0);
    stream.avail_in = 0;
    ended = false;
  }

  // False where the data are damaged. Ends where there is nothing left to read, or no room.
  bool run() {
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ended = result == Z_STREAM_END;
    return ended || result == Z_OK || result == Z_BUF_ERROR;
  }
};

PngRowReader::PngRowReader(const FilterKernels& kernels) : kernels_(kernels) {}

PngRowReader::~PngRowReader() = default;

void PngRowReader::open(std::span<const uint8_t> chunks, Extent size, unsigned pixel_bits) {
  left_ = chunks;
  size_ = size;
  pixel_bits_ = pixel_bits;
  pixel_bytes_ = std::max(size_t{1}, size_t{pixel_bits} / 8);
  line_bytes_ = 1 + (static_cast<size_t>(size.width) * pixel_bits + 7) / 8;
  together_ = static_cast<int32_t>(filter_rows(pixel_bytes_));
  const auto fit = static_cast<int32_t>(kLinesBytes / line_bytes_);
  room_ = (fit / together_ + 1) * together_;
  first_ = end_ = read_ = done_ = 0;
}

void PngRowReader::start(int32_t first, int32_t end, int32_t columns) {
  first_ = first;
  end_ = end;
  columns_ = (static_cast<size_t>(columns) * pixel_bits_ + 7) / 8 / pixel_bytes_;
  stride_ = columns_ * pixel_bytes_ + kFilterPadding;
  if (inflater_ == nullptr) inflater_ = std::make_unique<Inflater>();
  inflater_->reset(end == size_.height);
}

// The next chunk, which is one of data and all there.
bool PngRowReader::next_chunk() {
  if (left_.size() < kChunkHead || std::memcmp(left_.data() + 4, "IDAT", 4) != 0) return false;
  const size_t length = size_t{left_[0]} << 24 | size_t{left_[1]} << 16 | size_t{left_[2]} << 8 | left_[3];
  left_ = left_.subspan(kChunkHead);
  if (left_.size() < kChunkSum || length > left_.size() - kChunkSum || length > kMostAtOnce) return false;
  inflater_->stream.next_in = const_cast<Bytef*>(left_.data());  // which zlib only reads
  inflater_->stream.avail_in = static_cast<uInt>(length);
  left_ = left_.subspan(length + kChunkSum);
  return true;
}

bool PngRowReader::inflate(uint8_t* to, size_t size) {
  z_stream& stream = inflater_->stream;
  stream.next_out = to;
  while (size > 0) {
    if (stream.avail_in == 0) {
      if (!next_chunk()) return false;
      continue;
    }
    const size_t asked = std::min(size, kMostAtOnce);
    stream.avail_out = static_cast<uInt>(asked);
    if (inflater_->ended || !inflater_->run()) return false;
    size -= asked - stream.avail_out;
  }
  return true;
}

// Whether the compressed data end after the last row, with the right checksum, and their chunk with them.
bool PngRowReader::ends_here() {
  z_stream& stream = inflater_->stream;
  stream.avail_out = 0;
  while (!inflater_->ended) {
    if (stream.avail_in == 0) {
      if (!next_chunk()) return false;
      continue;
    }
    if (!inflater_->run() || (!inflater_->ended && stream.avail_in > 0)) return false;
  }
  return stream.avail_in == 0;
}

// How many rows there are from `row` to the next multiple of rows_together() from the first one on.
int32_t PngRowReader::rows_from(int32_t row) const {
  return together_ - (row + together_ - first_ % together_) % together_;
}

bool PngRowReader::inflate_rows() {
  lines_from_ = read_;
  const int32_t count = std::min(room_ - together_ + rows_from(read_), end_ - read_);
  const size_t room = static_cast<size_t>(std::min(room_, size_.height)) * line_bytes_;
  uint8_t* const lines = lines_.take(room + 2 * kFilterPadding) + kFilterPadding;
  if (!inflate(lines, static_cast<size_t>(count) * line_bytes_)) return false;
  for (int32_t y = 0; y < count; ++y) {
    if (lines[static_cast<size_t>(y) * line_bytes_] > kLastFilter) return false;
  }
  read_ += count;
  return read_ < size_.height || ends_here();
}

std::optional<PngRows> PngRowReader::next() {
  while (done_ < end_) {
    if (done_ == read_ && !inflate_rows()) return std::nullopt;
    const auto most = static_cast<size_t>(std::min(together_, size_.height));
    uint8_t* const above = rows_.take((1 + most) * stride_ + 2 * kFilterPadding) + kFilterPadding;
    uint8_t* const out = above + stride_;
    const size_t bytes = columns_ * pixel_bytes_;
    if (done_ == 0) {
      std::memset(above, 0, bytes);
    } else {
      std::memcpy(above, above + static_cast<size_t>(given_) * stride_, bytes);
    }
    given_ = std::min(rows_from(done_), read_ - done_);
    const uint8_t* const lines =
        lines_.data() + kFilterPadding + static_cast<size_t>(done_ - lines_from_) * line_bytes_;
    kernels_.undo(pixel_bytes_, {lines, line_bytes_, static_cast<size_t>(given_)}, above, columns_, out,
                  stride_);
    done_ += given_;
    if (done_ > first_) return PngRows{out, stride_, given_};
  }
  return std::nullopt;
}

bool PngRowReader::check() {
  start(0, size_.height, 1);
  while (read_ < end_) {
    if (!inflate_rows()) return false;
  }
  return true;
}

}  // namespace stoker
