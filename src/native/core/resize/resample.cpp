#include "core/resize/resample.h"

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

constexpr int32_t kRowsTogether = 128;  // fewer make raw images slower

}  // namespace

// One row, whose pixels are taken and not weighed.
void Resampler::pick(const uint8_t* from, uint8_t* to) const {
  const size_t columns = plan_.across().size();
  for (size_t x = 0; x < columns; ++x, to += kRgbBytes) {
    const int32_t column = plan_.across().first[flip_ ? columns - 1 - x : x] - plan_.needed().x;
    std::memcpy(to, from + static_cast<size_t>(column) * kRgbxBytes, kRgbBytes);
  }
}

// Rows that are taken and not weighed.
void Resampler::copy(RgbxView src, int32_t first) const {
  const int32_t begin = plan_.needed().y + first, end = begin + src.size.height;
  auto y =
      static_cast<int32_t>(std::lower_bound(plan_.down().first.begin(), plan_.down().first.end(), begin) -
                           plan_.down().first.begin());
  for (; y < static_cast<int32_t>(plan_.down().size()) && plan_.down().first[static_cast<size_t>(y)] < end;
       ++y) {
    pick(src.row(plan_.down().first[static_cast<size_t>(y)] - begin), dst_.row(y));
  }
}

void Resampler::start(bool flip, RgbSlot dst) {
  flip_ = flip;
  dst_ = dst;
  if (!plan_.goes_down_first()) kept_.rest();
  if (plan_.copies() || plan_.goes_down_first() || plan_.down().identity) return;
  // An output waits for no more rows than it has taps; as many again come before they are moved.
  const auto& counts = plan_.down().count;
  const int32_t most = *std::max_element(counts.begin(), counts.end());
  between_.most = std::min(most + std::max(most, kRowsTogether), plan_.needed().height);
  between_.rows = scratch(plan_.across().size() * kRgbBytes, static_cast<size_t>(between_.most));
}

void Resampler::add(RgbxView src, int32_t first) {
  if (plan_.copies()) return copy(src, first);
  if (plan_.goes_down_first()) return keep(src, first);
  if (plan_.down().identity) return pass_across(src, {dst_.row(first), dst_.stride});
  if (first == 0) between_.first = between_.count = between_.written = 0;
  for (int32_t done = 0; done < src.size.height;) {
    const int32_t left = src.size.height - done;
    if (between_.most - between_.count < std::min(left, kRowGroup)) drop_used();
    const int32_t fit = between_.most - between_.count;
    const int32_t rows = left <= fit ? left : fit / kRowGroup * kRowGroup;
    pass_across({src.row(done), src.stride, {src.size.width, rows}},
                {between_.rows.row(between_.count), between_.rows.stride});
    between_.count += rows;
    done += rows;
    write_complete();
  }
}

void Resampler::pass_across(RgbxView src, RgbSlot out) const {
  if (!plan_.across().identity)
    return kernels_.horizontal(plan_.across().view(), src, plan_.needed().x, flip_, out);
  for (int32_t y = 0; y < src.size.height; ++y) pick(src.row(y), out.row(y));
}

// The outputs whose last row has come.
void Resampler::write_complete() {
  const Taps& down = plan_.down();
  const int32_t begin = plan_.needed().y + between_.first, end = begin + between_.count;
  const auto written = static_cast<size_t>(between_.written);
  size_t next = written;
  while (next < down.size() && down.first[next] + down.count[next] <= end) ++next;
  kernels_.vertical(down.view(written, next - written), between_.rows.data, between_.rows.stride, begin,
                    between_.rows.stride, {dst_.row(between_.written), dst_.stride});
  between_.written = static_cast<int32_t>(next);
}

// Moves up the rows that outputs wait for: fewer than one has taps.
void Resampler::drop_used() {
  const Taps& down = plan_.down();
  const auto next = static_cast<size_t>(between_.written);
  const int32_t end = between_.first + between_.count;
  const int32_t first = next < down.size() ? std::min(down.first[next] - plan_.needed().y, end) : end;
  std::memmove(between_.rows.data, between_.rows.row(first - between_.first),
               static_cast<size_t>(end - first) * between_.rows.stride);
  between_.count = end - first;
  between_.first = first;
}

void Resampler::finish() {
  if (!plan_.goes_down_first()) return;
  const size_t width = static_cast<size_t>(plan_.needed().width) * kRgbxBytes;
  run_down_first({kept_.data(), width, {plan_.needed().width, plan_.needed().height}});
}

void Resampler::run(RgbxView src, bool flip, RgbSlot dst) {
  start(flip, dst);
  if (plan_.goes_down_first()) return run_down_first(src);
  add(src, 0);
  finish();
}

// The first pass down needs many rows at once, so all are kept.
void Resampler::keep(RgbxView src, int32_t first) {
  const size_t bytes = static_cast<size_t>(plan_.needed().width) * kRgbxBytes;
  uint8_t* const rows = kept_.take(bytes * static_cast<size_t>(plan_.needed().height) + kRgbxPadding);
  for (int32_t y = 0; y < src.size.height; ++y) {
    std::memcpy(rows + static_cast<size_t>(first + y) * bytes, src.row(y), bytes);
  }
}

void Resampler::run_down_first(RgbxView src) {
  const size_t bytes = static_cast<size_t>(plan_.needed().width) * kRgbxBytes;
  const RgbSlot between = scratch(bytes, plan_.down().size());
  kernels_.vertical(plan_.down().view(), src.data, src.stride, plan_.needed().y, bytes, between);
  const RgbxView lowered{
      between.data, bytes, {plan_.needed().width, static_cast<int32_t>(plan_.down().size())}};
  kernels_.horizontal(plan_.across().view(), lowered, plan_.needed().x, flip_, dst_);
}

RgbSlot Resampler::scratch(size_t stride, size_t rows) {
  // Kernels load and store whole vectors, which may reach a little past the end.
  return {scratch_.take(stride * rows + kRgbxPadding), stride};
}

}  // namespace stoker
