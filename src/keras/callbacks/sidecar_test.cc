// What runs beside training, and where things go by default on Vertex AI.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fresh_process_testing.h"
#include "base/vertex_folder.h"
#include "berth/train.h"
#include "distribute/multi_worker/tasks_testing.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

namespace fs = std::filesystem;
using fresh_process::check;

Sequential sidecar_model(float weight = 1) {
  Sequential model({InputLayer({3}), Dense(1, {.use_bias = false})});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  model.set_weights({fill({3, 1}, weight)});
  return model;
}

// y = 0, x = 1: the loss is the square of three times the weight.
data::Dataset sidecar_data() {
  return data::Dataset::from_tensor_slices({ones({4, 3}), zeros({4, 1})})
      .batch(2);
}

std::string sidecar_folder(const std::string& name) {
  const std::string folder =
      testing::TempDir() + "/sidecar_" + name + std::to_string(getpid());
  fs::remove_all(folder);
  return folder;
}

TEST(SidecarEvaluator, EvaluatesWhatIsSavedUntilTrainingIsDone) {
  const std::string folder = sidecar_folder("checkpoints");
  Sequential trained = sidecar_model();
  train::CheckpointManager manager(
      train::Checkpoint({{"model", trained}, {"other", train::random_state()}}),
      folder, {.max_to_keep = 1});
  // Asked before each look at the folder: another checkpoint, twice nothing,
  // then the end.
  int asked = 0;
  const auto done = [&] {
    ++asked;
    if (asked == 2 || asked == 5) {
      trained.set_weights({fill({3, 1}, static_cast<float>(asked))});
      manager.save();
    }
    return asked > 6;
  };
  const auto logs = utils::SidecarEvaluator(sidecar_model(), sidecar_data(),
                                            {.checkpoint_dir = folder,
                                             .done = done,
                                             .poll_seconds = 0.01,
                                             .verbose = 0})
                        .start();
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_NEAR(logs[0].at("loss"), 36, 1e-4);
  EXPECT_NEAR(logs[1].at("loss"), 225, 1e-3);
}

TEST(SidecarEvaluator, FollowsFilesOfWeightsAndEndsByNumber) {
  const std::string folder = sidecar_folder("weights");
  fs::create_directories(folder);
  sidecar_model(2).save_weights(folder + "/1.safetensors");
  const auto logs =
      utils::SidecarEvaluator(
          sidecar_model(), sidecar_data(),
          {.checkpoint_dir = folder, .max_evaluations = 1, .verbose = 0})
          .start();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_NEAR(logs[0].at("loss"), 36, 1e-4);
  EXPECT_THROW(utils::SidecarEvaluator(sidecar_model(), sidecar_data(),
                                       {.poll_seconds = 0}),
               errors::InvalidArgument);
}

void vertex_defaults() {
  const std::string base = sidecar_folder("vertex");
  setenv("AIP_MODEL_DIR", (base + "/model/").c_str(), 1);
  setenv("AIP_CHECKPOINT_DIR", (base + "/checkpoints/").c_str(), 1);
  setenv("AIP_TENSORBOARD_LOG_DIR", (base + "/logs/").c_str(), 1);
  Sequential model = sidecar_model();
  model.fit(
      sidecar_data(),
      {.verbose = 0,
       .callbacks = {
           callbacks::TensorBoard(), callbacks::ModelCheckpoint(),
           callbacks::BackupAndRestore("", {.delete_checkpoint = false})}});
  model.save();
  for (const char* path :
       {"/model/model.safetensors", "/checkpoints/checkpoint-01.safetensors",
        "/logs/train"}) {
    check(fs::exists(base + path), path);
  }
  check(train::latest_checkpoint(base + "/checkpoints").has_value(),
        "a backup");
  train::CheckpointManager manager(train::Checkpoint({{"model", model}}));
  check(manager.directory() == base + "/checkpoints", manager.directory());
  // What is named wins.
  model.save(base + "/mine.safetensors");
  check(fs::exists(base + "/mine.safetensors"), "a name");
  setenv("AIP_MODEL_DIR", "gs://bucket/job/model/", 1);
  const std::string at = or_vertex_folder("", "AIP_MODEL_DIR");
  check(at == "/gcs/bucket/job/model", at);
}

TEST(VertexFolders, AreTheDefaultsOfWhatIsNotNamed) {
  IN_A_FRESH_PROCESS(vertex_defaults());
  EXPECT_EQ(or_vertex_folder("", "NO_SUCH_VARIABLE"), "");
  EXPECT_EQ(or_vertex_folder("here/", "NO_SUCH_VARIABLE"), "here/");
  EXPECT_THROW(callbacks::BackupAndRestore(), errors::InvalidArgument);
}

using utils::experimental::DatasetCreator;

TEST(DatasetCreator, IsAskedForOnePipelineWithoutAStrategy) {
  Sequential model = sidecar_model();
  int calls = 0;
  const History h =
      model.fit(DatasetCreator([&](const distribute::InputContext& c) {
                  ++calls;
                  EXPECT_EQ(c.num_input_pipelines, 1);
                  EXPECT_EQ(c.input_pipeline_id, 0);
                  return sidecar_data();
                }),
                {.epochs = 1, .verbose = 0});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(h.history.at("loss").size(), 1u);
  EXPECT_THROW(model.fit(DatasetCreator(nullptr), {.verbose = 0}),
               errors::InvalidArgument);
}

void creators_of_tasks() {
  cpus(2);
  cluster::FakeCluster cluster({.workers = 2});
  const auto samples = distribute::on_tasks<std::vector<int64_t>>(
      cluster, [](const std::shared_ptr<cluster::Member>& member) {
        const int rank = member->rank();
        const distribute::MultiWorkerMirroredStrategy strategy(
            member, {.devices = distribute::core_sets(rank, 1)});
        const auto scope = strategy.scope();
        Sequential model = sidecar_model();
        const History h =
            model.fit(DatasetCreator([&](const distribute::InputContext& c) {
                        check(c.num_input_pipelines == 2, "pipelines");
                        check(c.input_pipeline_id == rank, "number");
                        return sidecar_data().take(c.input_pipeline_id + 1);
                      }),
                      {.epochs = 1, .verbose = 0});
        std::vector<int64_t> all;
        for (const auto& t : h.tasks->tasks) all.push_back(t.samples);
        return all;
      });
  for (const auto& s : samples) {
    check(s == std::vector<int64_t>({2, 4}), "samples");
  }
}

TEST(DatasetCreator, IsAskedByEachTaskForItsPart) {
  IN_A_FRESH_PROCESS(creators_of_tasks());
}

}  // namespace
}  // namespace berth::keras
