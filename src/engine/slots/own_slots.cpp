// See own_slots.hpp.
#include "engine/slots/own_slots.hpp"

#include <utility>

namespace penstock::engine {

OwnSlots::OwnSlots(Scheduler& scheduler, StagingSlots& slots, std::shared_ptr<Job> first)
    : scheduler_(scheduler), slots_(slots), jobs_{std::move(first)} {}

Job* OwnSlots::next_of_jobs(Chunk& chunk) {
    for (const auto& job : jobs_) {
        if (job->next(chunk)) return job.get();
    }
    std::shared_ptr<Job> job = scheduler_.take_alike(slots_.shape());
    if (!job) return nullptr;
    jobs_.push_back(std::move(job));
    return jobs_.back()->next(chunk) ? jobs_.back().get() : nullptr;
}

// A write opens slots until one is ready for storage: their copies from the device run beside each other.
bool OwnSlots::next(Chunk& chunk, bool may_open) {
    const bool writes_staged = shape().staged && shape().direction == Direction::write;
    while (!slots_.take_ready(chunk)) {
        if (!may_open || !slots_.sound() || !slots_.has_free()) return false;
        Job* const job = next_of_jobs(chunk);
        if (job == nullptr) return false;
        slots_.open(chunk, *job);
        if (!writes_staged) return true;
        slots_.copy_to_host(chunk);
    }
    return true;
}

void OwnSlots::stored(Chunk& chunk) {
    if (slots_.put(chunk)) slots_.leave_storage(chunk.slot);
    release_jobs(false);
}

bool OwnSlots::copy_lent(const Chunk& chunk, const Piece& piece, const Completion& completion) {
    return slots_.copy_lent(chunk, piece, completion);
}

bool OwnSlots::collect() {
    const bool any = slots_.collect();
    release_jobs(false);
    return any;
}

bool OwnSlots::give_up(Chunk& chunk) {
    slots_.give_up(chunk);
    release_jobs(false);
    return true;
}

// A job ends when its last worker gives it back, so a worker does that as soon as it can.
void OwnSlots::release_jobs(bool all) {
    for (auto it = jobs_.begin(); it != jobs_.end();) {
        if (slots_.hold(**it) || !(all || (*it)->exhausted())) {
            ++it;
            continue;
        }
        const std::shared_ptr<Job> job = std::move(*it);
        it = jobs_.erase(it);
        scheduler_.give_back(job);
    }
}

void OwnSlots::stop(const ErrorInfo& error) {
    for (const auto& job : jobs_) job->transfer().stop(error);
}

}  // namespace penstock::engine
