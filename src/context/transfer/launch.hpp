// launch(): the last step before the engine. It makes the transfer of a plan, which holds files and memory until its
// end, and sets up what is owed then: durability, evidence, lessons for the machine profile, and word to the files.
#pragma once

#include <memory>
#include <vector>

#include "context/files/announced.hpp"
#include "context/transfer/prepare.hpp"
#include "engine/transfer_state.hpp"

namespace penstock::context {

// The engine's record of a transfer, by a name that a public header can tell.
class StartedTransfer : public engine::TransferState {
  public:
    using TransferState::TransferState;
};

// Takes the files over from `announced` once nothing can fail any more.
std::shared_ptr<StartedTransfer> launch(const Submission& submission, Preview preview, Announced& announced);

// Waits until the storage has what was written. The time counts as the outcome's, and so does a failure as its error.
void sync_files(const std::vector<std::shared_ptr<OpenFile>>& files, Outcome& outcome);

}  // namespace penstock::context
