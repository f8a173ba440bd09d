#include "pumice/core/transaction.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "command.h"
#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/core/folder_lock.h"
#include "refusal.h"
#include "temporary_folder.h"

namespace pumice {
namespace {

using testing::content_of;
using testing::refusal;
using testing::TemporaryFolder;
namespace files = std::filesystem;

struct Killed {};

// Two files in the folder, one of them sensitive, and one elsewhere that is not there yet.
class TransactionTest : public ::testing::Test {
 protected:
  TransactionTest() {
    files::create_directory(home());
    write_file_atomically(home() / "a", "old a");
    write_file_atomically(home() / "b", "old b, sensitive");
  }
  files::path home() const { return folder_ / "home"; }
  files::path outside() const { return folder_ / "result"; }

  void change(const Transaction::OnStep& on_step) {
    Transaction transaction(home(), on_step);
    write_file_atomically(transaction.stage(outside()), "new result");
    write_file_atomically(transaction.stage(home() / "a"), "new a");
    write_file_atomically(transaction.stage(home() / "b", Replaced::wiped), "new b");
    transaction.commit();
  }
  // Every file below the folder, hidden ones included.
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> found;
    for (const auto& file : files::recursive_directory_iterator(folder_.path())) {
      if (file.is_regular_file()) {
        found[files::relative(file.path(), folder_.path()).string()] = content_of(file.path());
      }
    }
    return found;
  }

  TemporaryFolder folder_;
};

const std::map<std::string, std::string> before{{"home/a", "old a"},
                                                {"home/b", "old b, sensitive"}};
const std::map<std::string, std::string> after{
    {"home/a", "new a"}, {"home/b", "new b"}, {"result", "new result"}};

TEST_F(TransactionTest, AllFilesAppearAndNothingElseIsLeft) {
  std::vector<std::string> steps;
  change([&](const std::string& step) { steps.push_back(step); });
  EXPECT_EQ(state(), after);
  EXPECT_EQ(steps.back(), "done");
  EXPECT_NE(std::find(steps.begin(), steps.end(), "b wiped"), steps.end());
  EXPECT_EQ(recover(home()), Recovery::nothing);
}

TEST_F(TransactionTest, AnErrorBeforeTheCommitTakesEverythingBack) {
  EXPECT_EQ(refusal([&] {
              Transaction transaction(home());
              write_file_atomically(transaction.stage(home() / "a"), "new a");
              write_file_atomically(transaction.stage(outside()), "new result");
              fail("a reason");
            }),
            "a reason");
  EXPECT_EQ(state(), before);
}

TEST_F(TransactionTest, AKillAtAnyStepIsCompletedOrTakenBackWhole) {
  std::vector<std::string> steps;
  change([&](const std::string& step) { steps.push_back(step); });
  bool committed = false;
  for (const std::string& last : steps) {
    SCOPED_TRACE(last);
    committed = committed || last == "committed";
    files::remove(outside());
    write_file_atomically(home() / "a", "old a");
    write_file_atomically(home() / "b", "old b, sensitive");
    EXPECT_THROW(change([&](const std::string& step) {
                   if (step == last) throw Killed();
                 }),
                 Killed);
    const Recovery expected = last == "done" ? Recovery::nothing
                              : committed    ? Recovery::completed
                                             : Recovery::rolled_back;
    EXPECT_EQ(recover(home()), expected);
    EXPECT_EQ(state(), committed ? after : before);
  }
  EXPECT_TRUE(committed);
}

TEST_F(TransactionTest, AnInterruptedChangeIsFoundInAFolderThatWasMoved) {
  EXPECT_THROW(change([&](const std::string& step) {
                 if (step == "committed") throw Killed();
               }),
               Killed);
  files::rename(home(), folder_ / "moved");
  EXPECT_EQ(recover(folder_ / "moved"), Recovery::completed);
  EXPECT_EQ(content_of(folder_ / "moved/b"), "new b");
  EXPECT_EQ(content_of(outside()), "new result");
}

TEST_F(TransactionTest, WhatWritingLeftWhenItWasKilledGoesToo) {
  EXPECT_THROW(change([&](const std::string& step) {
                 if (step == "result announced") throw Killed();
               }),
               Killed);
  const files::path half = folder_ / "..result.staged.4711.tmp";
  write_file_atomically(half, "half of it");
  EXPECT_EQ(recover(home()), Recovery::rolled_back);
  EXPECT_EQ(state(), before);
}

// The limit on a file's size stands for a full disk: writing fails in the middle.
TEST_F(TransactionTest, AFullDiskLeavesEverythingAsItWas) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  rlimit tight = usual;
  tight.rlim_cur = 1000;
  ::setrlimit(RLIMIT_FSIZE, &tight);
  const std::string sentence = refusal([&] {
    Transaction transaction(home());
    write_file_atomically(transaction.stage(home() / "a"), "new a");
    write_file_atomically(transaction.stage(home() / "b"), std::string(100000, 'x'));
    transaction.commit();
  });
  ::setrlimit(RLIMIT_FSIZE, &usual);
  EXPECT_NE(sentence.find("cannot be written"), std::string::npos) << sentence;
  EXPECT_EQ(state(), before);
}

TEST_F(TransactionTest, ADamagedJournalIsAnErrorAndTouchesNothing) {
  write_file_atomically(home() / "journal.json", "{\"phase\":\"commit");
  EXPECT_NE(refusal([&] { recover(home()); }).find("damaged"), std::string::npos);
  EXPECT_EQ(content_of(home() / "a"), "old a");
}

TEST(WipeFile, ZerosReachTheDiskBeforeTheNameGoes) {
  const TemporaryFolder folder;
  const std::string secret(3000000, 's');
  write_file_atomically(folder / "f", secret);
  files::create_hard_link(folder / "f", folder / "other name");  // what the blocks hold afterwards
  wipe_file(folder / "f");
  EXPECT_FALSE(files::exists(folder / "f"));
  EXPECT_EQ(content_of(folder / "other name"), std::string(secret.size(), '\0'));
}

TEST(FolderLock, TheSecondOneIsToldWhoHasIt) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    EXPECT_EQ(refusal([&] { FolderLock second(folder.path()); }),
              folder.path().string() + ": another run is at work in this folder (process " +
                  std::to_string(::getpid()) + "), must end first");
  }
  EXPECT_EQ(refusal([&] { FolderLock third(folder.path()); }), "accepted");
}

}  // namespace
}  // namespace pumice
