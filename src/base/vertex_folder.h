// Folders that Vertex AI names for a job: AIP_MODEL_DIR, AIP_CHECKPOINT_DIR,
// AIP_TENSORBOARD_LOG_DIR. They are the defaults of what a program does not
// name. Thread-safe as long as no thread sets variables.

#ifndef BERTH_BASE_VERTEX_FOLDER_H_
#define BERTH_BASE_VERTEX_FOLDER_H_

#include <string>

namespace berth {

// `given`, or the folder that the variable names when `given` is empty, without
// a slash at its end: "gs://bucket/job/model/" is "/gcs/bucket/job/model",
// where Vertex AI mounts buckets. "" when neither is set.
std::string or_vertex_folder(const std::string& given, const char* variable);

}  // namespace berth

#endif  // BERTH_BASE_VERTEX_FOLDER_H_
