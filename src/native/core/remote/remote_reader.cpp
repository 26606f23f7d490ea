#include "core/remote/remote_reader.h"

#include <atomic>
#include <string>
#include <utility>

#include "core/base/errors.h"

namespace stoker {

TakenBytes DirectReader::take(const RemoteSpan& span) {
  auto bytes = std::make_shared<const std::vector<uint8_t>>(read_(span));
  if (bytes->size() != span.length) {
    throw Error(ErrorCode::kStorage, std::to_string(bytes->size()) + " bytes came where " +
                                         std::to_string(span.length) + " were asked for");
  }
  const std::span<const uint8_t> all = *bytes;
  return {all, std::move(bytes)};
}

void check_numbers(const RemoteFiles& files) {
  if (files.first >= 0 && files.first < int64_t{1} << 62) return;
  throw Error(ErrorCode::kBadArgument,
              "Remote files cannot be numbered from " + std::to_string(files.first) + " on");
}

int64_t number_remote_files(uint64_t count) {
  static std::atomic<int64_t> next{0};
  if (count > uint64_t{1} << 40) throw Error(ErrorCode::kBadArgument, "Too many remote files");
  return next.fetch_add(static_cast<int64_t>(count), std::memory_order_relaxed);
}

std::span<const uint8_t> RemoteScratch::take(const RemoteFiles& files, const RemoteSpan& span) {
  if (span.length == 0) return {};
  if (last_.held && span == span_) return last_.bytes;
  release();  // first: the request may wait for the budget that these bytes take
  RemoteReader& from = reader(files);
  last_ = out_of_turn ? from.read_now(span) : from.take(span);
  span_ = span;
  return last_.bytes;
}

std::span<const uint8_t> RemoteScratch::take_again(const RemoteFiles& files, const RemoteSpan& span) {
  release();
  RemoteReader& from = reader(files);
  from.count_reread();
  last_ = from.read_now(span);
  span_ = span;
  return last_.bytes;
}

}  // namespace stoker
