#include "pumice/parallel/launch.h"

#include <gtest/gtest.h>

#include "refusal.h"

namespace pumice {
namespace {

using testing::refusal;

TEST(Launch, NothingSetIsOneProcessWithoutANetwork) {
  const Launch launch = read_launch({});
  EXPECT_TRUE(launch.alone());
  EXPECT_EQ(launch.rank, 0);
  EXPECT_TRUE(launch.host.empty());
  // What shells and clusters leave lying around is no launch.
  EXPECT_TRUE(read_launch({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}).alone());
  EXPECT_TRUE(read_launch({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}).alone());
  EXPECT_TRUE(read_launch({{"RANK", ""}, {"WORLD_SIZE", ""}}).alone());
}

TEST(Launch, AWorldOfOneNeedsNoMeetingPoint) {
  EXPECT_TRUE(read_launch({{"WORLD_SIZE", "1"}}).alone());
  EXPECT_TRUE(read_launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).alone());
  EXPECT_TRUE(read_launch({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).alone());
  EXPECT_TRUE(read_launch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).alone());
}

TEST(Launch, TorchrunsVariablesSayEverything) {
  const Launch launch = read_launch(
      {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "1234"}});
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.host, "node1");
  EXPECT_EQ(launch.port, 1234);
  EXPECT_EQ(launch.source, "RANK and WORLD_SIZE");
}

TEST(Launch, WhereTorchrunListensItselfTheNextPortIsTaken) {
  Environment torchrun{{"RANK", "0"},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "node1"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  EXPECT_EQ(read_launch(torchrun).port, 29500);
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(read_launch(torchrun).port, 29501);
  torchrun["MASTER_PORT"] = "65535";
  EXPECT_EQ(read_launch(torchrun).port, 65534);
}

TEST(Launch, ManyProcessesThatNobodyNumbersAreRefused) {
  EXPECT_NE(refusal([] {
              read_launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}});
            }).find("PMI_SIZE: 4 processes, but nothing says who is who"),
            std::string::npos);
  EXPECT_TRUE(read_launch({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).alone());
}

TEST(Launch, OneHostIsProvenByTheLocalCountAndOnlyByThat) {
  Environment mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                  {"PMIX_NAMESPACE", "4020895745"}};
  const Launch first = read_launch(mpi);
  EXPECT_EQ(first.host, "127.0.0.1");
  EXPECT_EQ(first.source, "Open MPI");
  EXPECT_GE(first.port, 20000);
  EXPECT_LT(first.port, 32768);
  mpi["OMPI_COMM_WORLD_RANK"] = "3";
  EXPECT_EQ(read_launch(mpi).port, first.port);
  mpi["PMIX_NAMESPACE"] = "4020895746";
  EXPECT_NE(read_launch(mpi).port, first.port);

  mpi["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_EQ(
      refusal([&] { read_launch(mpi); }),
      "MASTER_ADDR: not set, must name the host of rank 0 (4 processes, and nothing says that "
      "all are on one host)");
  mpi["MASTER_ADDR"] = "10.0.0.1";
  EXPECT_EQ(read_launch(mpi).host, "10.0.0.1");
  EXPECT_EQ(read_launch({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}).host,
            "127.0.0.1");
}

TEST(Launch, ThePortIsGuessedOnOneHostOnly) {
  Environment environment{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}};
  EXPECT_EQ(read_launch(environment).port, 29500);
  environment["MASTER_ADDR"] = "node1";
  EXPECT_EQ(refusal([&] { read_launch(environment); }),
            "MASTER_PORT: not set, must be a free port of node1, the same for all processes");
}

TEST(Launch, SlurmsTasksMeetOnItsFirstNode) {
  Environment slurm{{"SLURM_PROCID", "5"},
                    {"SLURM_NTASKS", "16"},
                    {"SLURM_STEP_NUM_TASKS", "8"},
                    {"SLURM_JOB_ID", "4711"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_STEP_NUM_NODES", "4"},
                    {"SLURM_JOB_NODELIST", "gpu[01-08]"},
                    {"SLURM_STEP_NODELIST", "gpu[03-05,08]"},
                    {"SLURM_LAUNCH_NODE_IPADDR", "10.1.1.1"}};
  const Launch launch = read_launch(slurm);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.host, "gpu03");
  EXPECT_EQ(launch.source, "Slurm");
  slurm["SLURM_STEP_ID"] = "1";
  EXPECT_NE(read_launch(slurm).port, launch.port);
  slurm["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(read_launch(slurm).host, "127.0.0.1");
  // Without a list of nodes: where srun was called.
  EXPECT_EQ(read_launch({{"SLURM_PROCID", "1"},
                         {"SLURM_NTASKS", "2"},
                         {"SLURM_LAUNCH_NODE_IPADDR", "10.1.1.1"},
                         {"MASTER_PORT", "5000"}})
                .host,
            "10.1.1.1");
}

TEST(Launch, ABatchScriptItselfIsOneProcess) {
  EXPECT_TRUE(
      read_launch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}).alone());
}

TEST(Launch, SlurmsShortFormBeginsWithItsFirstHost) {
  EXPECT_EQ(first_slurm_host("node7"), "node7");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("node[03-05,9],gpu1"), "node03");
  EXPECT_EQ(first_slurm_host("n[7,9].cluster.example"), "n7.cluster.example");
  EXPECT_EQ(first_slurm_host("rack[1-2]n[01-16]"), "rack1n01");
  EXPECT_NE(refusal([] { first_slurm_host("node[1-2"); }).find("a ] is missing"),
            std::string::npos);
  EXPECT_NE(refusal([] { first_slurm_host(",b"); }).find("must begin with a host"),
            std::string::npos);
}

TEST(Launch, HalfOfAPairIsRefusedByName) {
  EXPECT_EQ(refusal([] {
              read_launch({{"RANK", "1"}});
            }),
            "WORLD_SIZE: not set, must be with RANK = 1");
  EXPECT_EQ(refusal([] {
              read_launch({{"WORLD_SIZE", "4"}});
            }),
            "RANK: not set, must be with WORLD_SIZE = 4");
  EXPECT_EQ(refusal([] {
              read_launch({{"OMPI_COMM_WORLD_SIZE", "2"}});
            }),
            "OMPI_COMM_WORLD_RANK: not set, must be with OMPI_COMM_WORLD_SIZE = 2");
  EXPECT_EQ(refusal([] {
              read_launch({{"SLURM_PROCID", "1"}});
            }),
            "SLURM_NTASKS: not set, must be with SLURM_PROCID = 1");
}

TEST(Launch, WhatIsNoRankOrPortIsRefused) {
  const auto with = [](const std::string& name, const std::string& value) {
    Environment environment{
        {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
    environment[name] = value;
    return refusal([&] { read_launch(environment); });
  };
  EXPECT_EQ(with("RANK", "2"), "RANK: 2, must be below WORLD_SIZE = 2");
  EXPECT_EQ(with("RANK", "-1"), "RANK: '-1', must be a whole number in 0 … 99999");
  EXPECT_EQ(with("RANK", "1x"), "RANK: '1x', must be a whole number in 0 … 99999");
  EXPECT_EQ(with("WORLD_SIZE", "0"), "WORLD_SIZE: '0', must be a whole number in 1 … 100000");
  EXPECT_EQ(with("WORLD_SIZE", "99999999999999999999"),
            "WORLD_SIZE: '99999999999999999999', must be a whole number in 1 … 100000");
  EXPECT_EQ(with("MASTER_PORT", "65536"),
            "MASTER_PORT: '65536', must be a whole number in 1 … 65535");
  EXPECT_EQ(with("MASTER_PORT", "http"),
            "MASTER_PORT: 'http', must be a whole number in 1 … 65535");
}

TEST(Launch, ContradictionsAreRefusedUnlessTorchrunRanUnderMpirun) {
  Environment both{
      {"RANK", "5"},        {"WORLD_SIZE", "8"},           {"MASTER_ADDR", "a"},
      {"MASTER_PORT", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_EQ(
      refusal([&] { read_launch(both); }),
      "RANK, WORLD_SIZE: 5 of 8, but Open MPI says 1 of 2; must agree, or RANK and WORLD_SIZE "
      "be unset");
  both["TORCHELASTIC_RUN_ID"] = "x";
  EXPECT_EQ(read_launch(both).rank, 5);
  // Four processes that all believe to be alone would write the same file.
  EXPECT_NE(
      refusal([] {
        read_launch(
            {{"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
      }).find("must agree"),
      std::string::npos);
  // Slurm's are the weakest: a shell of srun or mpirun's daemons have their own.
  EXPECT_EQ(read_launch({{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"SLURM_PROCID", "0"},
                         {"SLURM_NTASKS", "9"}})
                .size,
            2);
}

}  // namespace
}  // namespace pumice
