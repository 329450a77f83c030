#include "tools/command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace packtrain::tools {
namespace {

struct Seen {
  std::string dataset, to, order = "shuffled", command_line;
  std::vector<std::string> keys, rest;
  uint64_t shards = 0, bytes = 0;
  bool dry = false, json = false, quiet = false;
  uint32_t jobs = 0;
};
Seen* seen = nullptr;
Status (*body)(tools::Run&) = nullptr;

std::function<Status(tools::Run&)> declare_try(Options& options) {
  options.summary("tries the options")
      .example("packtrain try data --shards 3")
      .positional("DATASET", seen->dataset, "what to try")
      .positionals("[NAME=]REST", seen->rest, "whatever follows", 0)
      .text("-t,--to", seen->to, "a folder")
      .choice("--order", seen->order, {"shuffled", "stratified", "source"}, "the order")
      .list("--keys", seen->keys, "some keys")
      .number("--shards", seen->shards, "how many")
      .size("--shard-size", seen->bytes, "how large")
      .flag("--dry-run", seen->dry, "only say it");
  return [](tools::Run& run) {
    seen->json = run.json();
    seen->quiet = run.quiet();
    seen->jobs = run.jobs();
    seen->command_line = run.command_line();
    return body ? body(run) : Status();
  };
}

std::function<Status(tools::Run&)> declare_pack_like(Options& options) {
  options.summary("packs");
  return [](tools::Run&) { return Status(); };
}

struct Outcome {
  int code;
  std::string out, err;
};

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override { seen = &seen_, body = nullptr; }

  Outcome run(std::vector<std::string> words) {
    words.insert(words.begin(), "packtrain");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = run_command(static_cast<int>(argv.size()), argv.data(),
                               {{"try", declare_try}, {"pack", declare_pack_like}});
    outcome.out = ::testing::internal::GetCapturedStdout();
    outcome.err = ::testing::internal::GetCapturedStderr();
    return outcome;
  }

  Seen seen_;
};

TEST_F(CommandTest, OptionsArriveWhereTheyAreKept) {
  const Outcome outcome =
      run({"try",          "--keys", "a,b",    "data", "--shards=3", "-t",     "out dir",
           "--shard-size", "512M",   "--keys", "c",    "--order",    "source", "--dry-run",
           "-j",           "4",      "-q",     "x=y",  "--",         "--odd"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(seen_.dataset, "data");
  EXPECT_EQ(seen_.rest, (std::vector<std::string>{"x=y", "--odd"}));
  EXPECT_EQ(seen_.to, "out dir");
  EXPECT_EQ(seen_.keys, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(seen_.order, "source");
  EXPECT_EQ(seen_.shards, 3u);
  EXPECT_EQ(seen_.bytes, 512000000u);
  EXPECT_TRUE(seen_.dry);
  EXPECT_TRUE(seen_.quiet);
  EXPECT_EQ(seen_.jobs, 4u);
  EXPECT_NE(seen_.command_line.find("-t 'out dir'"), std::string::npos) << seen_.command_line;
}

TEST_F(CommandTest, WrongUsageIsExitCodeTwoAndOneSentenceThatPointsToHelp) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"try"}, "DATASET is missing"},
      {{"try", "d", "--shrads", "3"}, "did you mean --shards?"},
      {{"try", "d", "--shards", "many"}, "'many' is not a whole number"},
      {{"try", "d", "--shards", "-1"}, "--shards: '-1' is below 0; give a whole number from 0 on"},
      {{"try", "d", "--shards", "99999999999999999999"}, "is too large; give a whole number up to"},
      {{"try", "d", "--shard-size", "big"}, "is not a size"},
      {{"try", "d", "--order", "sorce"}, "did you mean source?"},
      {{"try", "d", "--to"}, "--to needs a value"},
      {{"try", "d", "--to", ""}, "--to: an empty text names nothing"},
      {{"try", "d", "--to", "a", "--to", "b"}, "--to: is given twice"},
      {{"try", "d", "--keys", ","}, "--keys: an empty list names nothing"},
      {{"try", "d", "--dry-run=maybe"}, "--dry-run takes no value"},
      {{"pack", "x"}, "'x' is one argument too many"},
  };
  for (const auto& [words, expected] : cases) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("see packtrain " + words[0] + " --help\n"), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.out.empty());
  }
}

TEST_F(CommandTest, JsonIsExactlyOneObjectAlsoWhenTheUsageIsWrong) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"try", "--json"}, {"try", "d", "--nope", "--json"}, {"tri", "--json"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2);
    const Result<Json> object = Json::parse(outcome.out);
    ASSERT_TRUE(object.ok()) << outcome.out;
    EXPECT_EQ((*object)["error"]["code"].as_string(), "invalid");
    EXPECT_TRUE((*object)["error"].has("where"));
  }
  body = [](tools::Run& run) {
    run.say("not to be seen");
    run.say_raw("nor this");
    run.result().set("samples", 3);
    return run.bad_data("three samples are damaged");
  };
  const Outcome outcome = run({"try", "d", "--json"});
  EXPECT_EQ(outcome.code, 1);
  const Result<Json> object = Json::parse(outcome.out);
  ASSERT_TRUE(object.ok()) << outcome.out;
  EXPECT_EQ((*object)["samples"].as_int(), 3);
  EXPECT_EQ((*object)["error"]["code"].as_string(), "corrupt");
  EXPECT_EQ(outcome.err, "packtrain try: three samples are damaged\n");
}

TEST_F(CommandTest, EveryCodeHasItsExitCode) {
  static Code code;
  body = [](tools::Run&) { return Status(code, "why").at("where"); };
  for (const auto& [each, exit] : {std::pair{Code::corrupt, 1},
                                   {Code::invalid, 2},
                                   {Code::not_found, 2},
                                   {Code::unsupported, 2},
                                   {Code::no_room, 3},
                                   {Code::stopped, 4},
                                   {Code::io, 5}}) {
    code = each;
    const Outcome outcome = run({"try", "d"});
    EXPECT_EQ(outcome.code, exit);
    EXPECT_EQ(outcome.err, "packtrain try: where: why\n");
  }
}

TEST_F(CommandTest, HelpShowsOptionsDefaultsAndTheExample) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"try", "--help"}, {"try", "--bogus", "-h"}, {"help", "try"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0);
    for (const char* text : {"usage: packtrain try", "[NAME=]REST…", "-t, --to TO", "(default: shuffled)",
                             "packtrain try data --shards 3", "--json", "--jobs N", "--quiet"}) {
      EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in\n" << outcome.out;
    }
  }
}

TEST_F(CommandTest, VerbsAreListedAndAWrongOneGetsTheNearest) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--help"}, {"help"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("  try       tries the options\n"), std::string::npos) << outcome.out;
  }
  const Outcome outcome = run({"pakc", "x"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "packtrain: there is no verb 'pakc'; did you mean pack? see packtrain --help\n");
  EXPECT_EQ(run({"zzzzzz"}).err, "packtrain: there is no verb 'zzzzzz'; see packtrain --help\n");
  EXPECT_EQ(run({"--quiet", "try"}).err,
            "packtrain: the verb is missing in front of --quiet: packtrain VERB [options]; see packtrain "
            "--help\n");
}

// In a child: the handlers and the flag are the process's own.
int exit_in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : 1000 + WTERMSIG(state);
}

TEST_F(CommandTest, ASignalStopsTheWorkAtItsNextProgressAndASecondAtOnce) {
  body = [](tools::Run& run) {
    const Progress progress = run.progress();
    if (!progress({.phase = "a"})) return Status(Code::io, "too early");
    raise(SIGTERM);
    return progress({.phase = "a"}) ? Status(Code::io, "went on") : Status(Code::stopped, "stopped");
  };
  EXPECT_EQ(exit_in_child([&] {
              const Outcome outcome = run({"try", "d"});
              return outcome.err == "packtrain try: stopped; run the same command again to continue\n"
                         ? outcome.code
                         : 99;
            }),
            4);
  body = [](tools::Run&) {
    raise(SIGINT);
    raise(SIGTERM);
    return Status(Code::io, "survived both");
  };
  EXPECT_EQ(exit_in_child([&] { return run({"try", "d"}).code; }), 4);
}

TEST_F(CommandTest, ASignalThatWasIgnoredStaysIgnored) {
  body = [](tools::Run& run) {
    raise(SIGHUP);
    return run.progress()({.phase = "a"}) ? Status() : Status(Code::stopped, "stopped");
  };
  EXPECT_EQ(exit_in_child([&] {
              signal(SIGHUP, SIG_IGN);
              return run({"try", "d"}).code;
            }),
            0);
}

TEST_F(CommandTest, AClosedStdoutEndsQuietlyAndAFullOneIsAnError) {
  static char line[] = "0123456789012345678901234567890123456789012345678901234567890123\n";
  body = [](tools::Run& run) {
    for (int i = 0; i < 100000; ++i) run.say_raw(line);
    return Status();
  };
  const auto run_into = [&](int out) {
    dup2(out, STDOUT_FILENO);
    char name[] = "packtrain", verb[] = "try", dataset[] = "d";
    char* argv[] = {name, verb, dataset};
    return run_command(3, argv, {{"try", declare_try}});
  };
  EXPECT_EQ(exit_in_child([&] {
              int ends[2];
              if (pipe(ends) != 0) return 98;
              close(ends[0]);
              return run_into(ends[1]);
            }),
            1000 + SIGPIPE);
  EXPECT_EQ(exit_in_child([&] {
              FILE* full = fopen("/dev/full", "w");
              return full == nullptr ? 97 : run_into(fileno(full));
            }),
            3);
}

}  // namespace
}  // namespace packtrain::tools
