#include "tools/progress_bar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace packtrain::tools {
namespace {

// A clock that stands still until it is moved, and a memory of what was written.
struct FakeTerminal {
  double now = 0;
  std::vector<std::string> written;
  size_t columns = 80;
  ProgressBar::Terminal terminal() {
    return {[this] { return now; }, [this](std::string_view text) { written.emplace_back(text); },
            [this] { return columns; }};
  }
};

ProgressEvent event_at(uint64_t items) {
  return {.phase = "write",
          .items = items,
          .items_total = 1000,
          .bytes = items * 1000,
          .bytes_total = 1000000,
          .unit = "files"};
}

TEST(ProgressBarTest, WorkUnderTwoSecondsIsSilent) {
  FakeTerminal fake;
  ProgressBar bar(ProgressStyle::bar, "pack", fake.terminal());
  for (int i = 0; i < 19; ++i) {
    fake.now = 0.1 * i;
    bar.update(event_at(i));
  }
  bar.clear();
  EXPECT_TRUE(fake.written.empty());
}

TEST(ProgressBarTest, BarShowsShareRateAndTimeLeftAndFitsTheTerminal) {
  FakeTerminal fake;
  ProgressBar bar(ProgressStyle::bar, "pack", fake.terminal());
  bar.update(event_at(0));
  fake.now = 4;
  bar.update(event_at(200));
  ASSERT_EQ(fake.written.size(), 1u);
  const std::string& line = fake.written[0];
  EXPECT_NE(line.find("20 %"), std::string::npos) << line;
  EXPECT_NE(line.find("16 s left"), std::string::npos) << line;  // 50 a second, 800 to go
  EXPECT_NE(line.find("200 of 1,000 files"), std::string::npos) << line;
  EXPECT_LT(line.size(), 80u + 4);  // and the four bytes that wipe the old line
  for (size_t columns = 20; columns < 200; ++columns) {
    RecentRate rate;
    rate.restart(event_at(0), 0);
    rate.update(event_at(200), 4);
    EXPECT_LE(progress_line(event_at(200), rate, columns).size(), columns);
  }
}

TEST(ProgressBarTest, ClearWipesOnceAndTheNextUpdateDrawsAgain) {
  FakeTerminal fake;
  ProgressBar bar(ProgressStyle::bar, "pack", fake.terminal());
  bar.update(event_at(0));
  fake.now = 3;
  bar.update(event_at(10));
  bar.clear();
  bar.clear();
  ASSERT_EQ(fake.written.size(), 2u);
  EXPECT_EQ(fake.written[1], "\r\x1b[K");
  bar.update(event_at(11));
  EXPECT_EQ(fake.written.size(), 3u);
}

TEST(ProgressBarTest, WithoutATerminalThereIsALineEveryTenSeconds) {
  FakeTerminal fake;
  ProgressBar bar(ProgressStyle::lines, "pack", fake.terminal());
  for (int i = 0; i <= 250; ++i) {
    fake.now = 0.1 * i;
    bar.update(event_at(i));
  }
  ASSERT_EQ(fake.written.size(), 2u);
  EXPECT_EQ(fake.written[0].substr(0, 27), "packtrain pack: write 10 %,");
  EXPECT_EQ(fake.written[0].back(), '\n');
}

TEST(RecentRateTest, FollowsAStorageThatSlowsDown) {
  RecentRate rate;
  rate.restart({}, 0);
  ProgressEvent event;
  for (int second = 1; second <= 60; ++second) {
    event.items += second <= 30 ? 1000 : 10;
    rate.update(event, second);
  }
  EXPECT_LT(rate.items(), 100);
  EXPECT_GT(rate.items(), 9);
}

TEST(RecentRateTest, IsThePlainAverageAtTheStart) {
  RecentRate rate;
  rate.restart({}, 0);
  ProgressEvent event;
  event.items = 100;
  rate.update(event, 1);
  event.items = 400;
  rate.update(event, 2);
  EXPECT_DOUBLE_EQ(rate.items(), 200);
}

}  // namespace
}  // namespace packtrain::tools
