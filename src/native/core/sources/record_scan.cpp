#include "core/sources/record_scan.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <string>

#include "core/base/errors.h"
#include "core/base/name_digest.h"
#include "core/examples/example.h"
#include "core/threads/share_work.h"

namespace stoker {
namespace {

// Records a thread takes at a time: few enough to share evenly, many enough to be read one behind the other.
constexpr size_t kPiece = 64;

// Calls `visit(i, payload, scratch)` for the records at positions 0 .. count - 1.
template <typename Visit>
void scan(const RecordSet& records, RecordNumbers numbers, size_t count, size_t threads, RemoteReader* ahead,
          const Visit& visit) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  size_t error_index = std::numeric_limits<size_t>::max();
  const auto work = [&] {
    SourceScratch scratch;
    scratch.remote.ahead = ahead;
    size_t i = 0;
    try {
      for (size_t begin = next.fetch_add(kPiece); begin < count; begin = next.fetch_add(kPiece)) {
        for (i = begin; i < std::min(begin + kPiece, count); ++i) {
          const auto payload = records.read(numbers[i], PayloadCheck::kOn, scratch);
          try {
            visit(i, payload, scratch);
          } catch (const Error& wrong) {
            throw located(wrong, records.where(numbers[i]));
          }
        }
      }
    } catch (...) {  // a thread root: the caller gets it. Pieces before this one are all taken, and go on.
      const std::lock_guard lock(mutex);
      next = count;
      if (i >= error_index) return;
      error_index = i;
      error = std::current_exception();
    }
  };
  share_work(std::min(threads, (count + kPiece - 1) / kPiece), work);
  if (error) std::rethrow_exception(error);
}

FeatureView find_feature(std::span<const uint8_t> payload, std::string_view key) {
  Wanted wanted{key, {}};
  find_features(payload, {&wanted, 1});
  return wanted.view;
}

}  // namespace

void count_values(const RecordSet& records, std::string_view key, RecordNumbers numbers, size_t threads,
                  RemoteReader* ahead, std::span<uint32_t> out) {
  scan(records, numbers, out.size(), threads, ahead,
       [&](size_t i, std::span<const uint8_t> payload, SourceScratch&) {
         const size_t most = std::numeric_limits<uint32_t>::max();
         out[i] = static_cast<uint32_t>(std::min(find_feature(payload, key).count(), most));
       });
}

void read_labels(const RecordSet& records, const LabelKeys& keys, RecordNumbers numbers, size_t threads,
                 RemoteReader* ahead, std::span<int64_t> out) {
  std::fill(out.begin(), out.end(), -1);
  if (keys.key.empty()) return;
  scan(records, numbers, out.size(), threads, ahead,
       [&](size_t i, std::span<const uint8_t> payload, SourceScratch& scratch) {
         const FeatureView view = find_feature(payload, keys.key);
         if (view.count() > 0) out[i] = label_of(view, keys, scratch.numbers);
       });
}

void digest_names(const RecordSet& records, std::string_view key, RecordNumbers numbers, size_t threads,
                  RemoteReader* ahead, std::span<uint64_t> out) {
  scan(records, numbers, out.size(), threads, ahead,
       [&](size_t i, std::span<const uint8_t> payload, SourceScratch&) {
         const FeatureView view = find_feature(payload, key);
         if (view.kind() == FeatureKind::kBytes && view.count() > 0) {
           out[i] = name_digest(view.first_bytes());
         } else {
           const std::string number = std::to_string(numbers[i]);
           out[i] = name_digest({reinterpret_cast<const uint8_t*>(number.data()), number.size()});
         }
       });
}

}  // namespace stoker
