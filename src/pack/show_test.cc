#include <gtest/gtest.h>

#include <condition_variable>
#include <set>
#include <string>
#include <thread>

#include "base/hash.h"
#include "base/mutex.h"
#include "io/test_storage.h"
#include "pack/show_facts.h"
#include "pack/show_html.h"
#include "pack/show_plot.h"
#include "pack/synth_sample.h"
#include "packtrain/decode.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

struct NamedBytes {
  std::string name;
  std::string bytes;
};

std::string text_of(const std::vector<std::byte>& bytes) { return std::string(as_text(bytes)); }

// Samples laid one behind the other into shards of equal numbers, in memory.
class ShowTest : public ::testing::Test {
 protected:
  void add(std::string key, int64_t label, std::vector<NamedBytes> fields) {
    samples_.push_back({std::move(key), label, std::move(fields)});
  }

  std::shared_ptr<Dataset> dataset(size_t per_shard = 1000) {
    IndexBuilder builder;
    EXPECT_TRUE(storage_.make_folder("data").ok());
    for (size_t first = 0; first < samples_.size(); first += per_shard) {
      const std::string path = "part-" + std::to_string(first / per_shard) + ".bin";
      std::string bytes;
      for (size_t i = first; i < std::min(first + per_shard, samples_.size()); ++i)
        for (const NamedBytes& field : samples_[i].fields) bytes += field.bytes;
      EXPECT_TRUE(write_whole(storage_, "data/" + path, as_bytes(bytes), {.replace = true}).ok());
      const uint32_t shard = builder.add_shard({.path = path, .format = "test", .bytes = bytes.size()});
      uint64_t offset = 0;
      for (size_t i = first; i < std::min(first + per_shard, samples_.size()); ++i) {
        if (i == split_at_) builder.begin_split("val");
        if (i == 0 && split_at_ > 0) builder.begin_split("train");
        builder.begin_sample(samples_[i].key);
        if (samples_[i].label != kNoLabel) builder.set_label(samples_[i].label);
        for (const NamedBytes& field : samples_[i].fields) {
          const uint32_t check = crc32c(as_bytes(field.bytes)) ^ (samples_[i].key == "broken" ? 1 : 0);
          builder.add_field(field.name, shard, offset, field.bytes.size(), CheckKind::crc32c, check,
                            field.name);
          offset += field.bytes.size();
        }
        EXPECT_TRUE(builder.end_sample().ok());
      }
    }
    builder.set_classes(classes_);
    auto opened = Dataset::from_memory(storage_, "data", builder.finish());
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    return *opened;
  }

  std::string page(const ShowOptions& options = {}, size_t per_shard = 1000) {
    const auto made = show_page(*dataset(per_shard), options);
    EXPECT_TRUE(made.ok()) << made.status().text();
    return made.ok() ? *made : "";
  }

  struct Sample {
    std::string key;
    int64_t label;
    std::vector<NamedBytes> fields;
  };
  MemoryStorage storage_;
  std::vector<Sample> samples_;
  std::vector<std::string> classes_;
  size_t split_at_ = 0;
};

size_t count_of(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_F(ShowTest, ShowsEveryKindOfSample) {
  classes_ = {"otter", "maple"};
  const SynthKeys keys{.seed = 1, .index = 2, .label = 1, .classes = 2};
  add("photo", 0, {{"cls", "0"}, {"jpg", text_of(*synth_photo(keys))}, {"txt", "an otter at rest"}});
  add("sound", 1, {{"wav", text_of(synth_recording(keys))}});
  add("words", 1, {{"txt", "Once upon a time <b>there</b> was"}});
  add("facts", 1, {{"json", "{\"a\": [1, 2]}"}});
  add("plane", 1, {{"npy", text_of(synth_field(keys))}});
  add("stuff", 1, {{"bin", std::string("\0\1\2", 3)}});
  const std::string html = page();
  EXPECT_EQ(count_of(html, "<figure>"), 6u);
  EXPECT_EQ(count_of(html, "src=\"data:image/jpeg;base64,"), 2u);
  EXPECT_EQ(count_of(html, "aria-label=\"waveform\""), 1u);
  EXPECT_NE(html.find("an otter at rest"), std::string::npos);
  EXPECT_NE(html.find("Once upon a time &lt;b&gt;there&lt;/b&gt; was"), std::string::npos);
  EXPECT_NE(html.find("{&quot;a&quot;: [1, 2]}"), std::string::npos);
  EXPECT_NE(html.find("<div>bin <span>"), std::string::npos);
  EXPECT_EQ(html.find("damaged</b>"), std::string::npos);
  EXPECT_NE(html.find("Image sizes"), std::string::npos);
}

TEST_F(ShowTest, NeedsNothingFromOutside) {
  add("a", kNoLabel, {{"txt", "see http://example.org"}});
  const std::string html = page();
  for (const std::string_view outside : {"<script", "<link", "src=\"http", "url(", "@import"})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
}

TEST_F(ShowTest, DamagedSamplesAreBoxesThatSaySo) {
  const SynthKeys keys{.seed = 1, .index = 2, .label = 0, .classes = 2};
  const std::string photo = text_of(*synth_photo(keys));
  add("broken", kNoLabel, {{"jpg", photo}});
  add("cut", kNoLabel, {{"jpg", photo.substr(0, photo.size() / 2)}});
  add("wav", kNoLabel, {{"wav", "RIFF\1\2\3\4WAVEfmt "}});
  add("whole", kNoLabel, {{"jpg", photo}});
  const std::string html = page();
  EXPECT_EQ(count_of(html, "<b>damaged</b>"), 3u);
  EXPECT_EQ(count_of(html, "src=\"data:image/jpeg;base64,"), 1u);
}

TEST_F(ShowTest, NamesOfAnyBytesAreEscaped) {
  classes_ = {"<img src=x onerror=alert(1)>", "\xFF\xFE&\"'"};
  add("k<1>", 0, {{"txt", "x"}});
  add("k\"2\"", 1, {{"txt", "y"}});
  const std::string html = page();
  EXPECT_EQ(html.find("<img src=x"), std::string::npos);
  EXPECT_NE(html.find("&lt;img src=x onerror=alert(1)&gt;"), std::string::npos);
  EXPECT_NE(html.find("\xEF\xBF\xBD\xEF\xBF\xBD&amp;&quot;&#39;"), std::string::npos);
  EXPECT_NE(html.find("k&lt;1&gt;"), std::string::npos);
  EXPECT_EQ(html.find('\xFF'), std::string::npos);
}

TEST_F(ShowTest, SplitIsLookedAtAlone) {
  split_at_ = 6;
  for (int i = 0; i < 8; ++i) add("key" + std::to_string(i), kNoLabel, {{"txt", "text"}});
  const std::string html = page({.split = "val"}, 2);
  EXPECT_EQ(count_of(html, "<figure>"), 2u);
  EXPECT_EQ(html.find("key5"), std::string::npos);
  EXPECT_NE(html.find("<dt>shards</dt><dd>1</dd>"), std::string::npos);
  const auto missing = show_page(*dataset(), {.split = "test"});
  EXPECT_EQ(missing.status().code(), Code::not_found);
  EXPECT_NE(missing.status().message().find("train, val"), std::string::npos);
}

TEST_F(ShowTest, SamplesAreDrawnEvenlyOverClasses) {
  for (int i = 0; i < 300; ++i) add("k" + std::to_string(i), i < 280 ? 0 : i < 299 ? 1 : 2, {{"txt", "x"}});
  const auto data = dataset();
  const SampleRange range{0, 300};
  const ClassFacts classes = count_classes(*data, range);
  EXPECT_EQ(classes.counts, (std::vector<uint64_t>{280, 19, 1}));
  const auto chosen = choose_samples(*data, range, classes, 21, 5);
  std::vector<int> drawn(3, 0);
  for (const uint64_t sample : chosen) ++drawn[static_cast<size_t>(data->label(sample))];
  EXPECT_EQ(drawn, (std::vector<int>{10, 10, 1}));
  EXPECT_EQ(choose_samples(*data, range, classes, 21, 5), chosen);
  EXPECT_NE(choose_samples(*data, range, classes, 21, 6), chosen);
  EXPECT_EQ(choose_samples(*data, range, classes, 2, 5).size(), 2u);
  EXPECT_EQ(choose_samples(*data, range, classes, 1000, 5).size(), 300u);
}

TEST_F(ShowTest, ManyClassesBecomeAProfile) {
  for (int i = 0; i < 100; ++i) add("k" + std::to_string(i), i, {{"txt", "x"}});
  const std::string html = page({.samples = 4});
  EXPECT_NE(html.find("100 classes, largest first"), std::string::npos);
  EXPECT_NE(html.find("<h3>Smallest</h3>"), std::string::npos);
  EXPECT_EQ(count_of(html, "<figure>"), 4u);
}

TEST_F(ShowTest, EmptyDatasetHasAPage) {
  const std::string html = page();
  EXPECT_NE(html.find("There are no samples."), std::string::npos);
}

// Holds the first readers back until there are two of them, for some seconds at most.
class MeetingStorage : public StorageWrapper {
 public:
  using StorageWrapper::StorageWrapper;
  size_t readers() {
    Lock lock(mutex_);
    return readers_.size();
  }

 private:
  Status before(Call call, std::string_view, uint64_t) override {
    if (call != Call::read) return {};
    Lock lock(mutex_);
    readers_.insert(std::this_thread::get_id());
    met_.notify_all();
    for (int turns = 0; readers_.size() < 2 && turns < 50; ++turns)
      (void)lock.wait_for(met_, std::chrono::milliseconds(100));
    return {};
  }

  Mutex mutex_;
  std::condition_variable met_;
  std::set<std::thread::id> readers_ GUARDED_BY(mutex_);
};

TEST_F(ShowTest, ThePageIsTheSameForAnyNumberOfJobs) {
  for (int i = 0; i < 60; ++i)
    add("k" + std::to_string(i), i % 3, {{"txt", "text number " + std::to_string(i)}});
  const std::string one = page({.jobs = 1});
  EXPECT_EQ(count_of(one, "<figure>"), 60u);
  EXPECT_EQ(page({.jobs = 4}), one);
  MeetingStorage meeting(storage_);
  (void)dataset();
  IndexBuilder builder;
  const uint32_t shard = builder.add_shard({.path = "part-0.bin", .format = "test", .bytes = 1170});
  for (uint64_t i = 0; i < 40; ++i) {
    builder.begin_sample("k" + std::to_string(i));
    builder.add_field("txt", shard, i, 1, CheckKind::none, 0, "txt");
    ASSERT_TRUE(builder.end_sample().ok());
  }
  const auto info = storage_.stat("data/part-0.bin");
  ASSERT_TRUE(info.ok());
  IndexBuilder::Finished finished = builder.finish();
  finished.manifest.shards[0].bytes = info->size;
  const auto opened = Dataset::from_memory(meeting, "data", std::move(finished));
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  ASSERT_TRUE(show_page(**opened, {.jobs = 3}).ok());
  EXPECT_GE(meeting.readers(), 2u);
}

TEST_F(ShowTest, FactsAreTheSameForAnyNumberOfJobs) {
  IndexBuilder builder;
  const uint64_t samples = 200'000;
  const uint32_t shard = builder.add_shard({.path = "a.bin", .format = "test", .bytes = 1 << 20});
  for (uint64_t i = 0; i < samples; ++i) {
    builder.begin_sample("k" + std::to_string(i));
    builder.add_field(i % 2 == 0 ? "a" : "b", shard, i, i % 777, CheckKind::none, 0, "");
    ASSERT_TRUE(builder.end_sample().ok());
  }
  const auto opened = Dataset::from_memory(storage_, "data", builder.finish());
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  const auto one = describe(**opened, {}, 1);
  ASSERT_TRUE(one.ok()) << one.status().text();
  EXPECT_NE(one->find("\"samples\": 100000"), std::string::npos) << *one;
  EXPECT_EQ(describe(**opened, {}, 3).value(), *one);
  const auto stopped = describe(
      **opened, [](const ProgressEvent&) { return false; }, 3);
  EXPECT_EQ(stopped.status().code(), Code::stopped);
}

TEST(ShowHtmlTest, Base64MatchesItsDefinition) {
  EXPECT_EQ(data_uri("a/b", as_bytes("")), "data:a/b;base64,");
  EXPECT_EQ(data_uri("a/b", as_bytes("f")), "data:a/b;base64,Zg==");
  EXPECT_EQ(data_uri("a/b", as_bytes("fo")), "data:a/b;base64,Zm8=");
  EXPECT_EQ(data_uri("a/b", as_bytes("foobar")), "data:a/b;base64,Zm9vYmFy");
}

TEST(ShowHtmlTest, LongTextIsCutAtACharacter) {
  EXPECT_EQ(html_text("gr\xC3\xBC\xC3\x9F", 3), "gr…");
  EXPECT_EQ(html_text("gr\xC3\xBC\xC3\x9F", 4), "gr\xC3\xBC…");
  EXPECT_EQ(html_text("gr\xC3\xBC\xC3\x9F", 6), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(html_text("cut \xE2\x82"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(ShowPlotTest, EveryTruncationIsSafe) {
  const SynthKeys keys{.seed = 1, .index = 2, .label = 1, .classes = 2};
  const auto wav = synth_recording(keys), npy = synth_field(keys);
  ASSERT_TRUE(waveform(wav));
  ASSERT_TRUE(number_plane(npy));
  for (size_t cut = 0; cut < 200; ++cut) {
    EXPECT_EQ(waveform(Bytes(wav).first(cut)).has_value(), cut >= 46) << cut;  // one frame is enough
    EXPECT_FALSE(number_plane(Bytes(npy).first(cut))) << cut;
  }
}

}  // namespace
}  // namespace packtrain
