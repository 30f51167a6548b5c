// See stream.hpp. The copy engines make single copies. One kernel copies a batch of small pieces, because each
// cudaMemcpyAsync costs about 2.2 us, whatever its size.
#include "device/cuda/stream.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace penstock::device {
namespace {

constexpr std::uint64_t kKernelPieceBytes = 256 * kKiB;  // the copy engine copies larger pieces
constexpr std::uint64_t kTaskBytes = 8 * kKiB;           // that one warp copies
constexpr auto kSpin = std::chrono::microseconds(5);     // shorter waits spin
constexpr auto kSoon = std::chrono::microseconds(50);    // as synchronize_soon does
constexpr auto kFirstSleep = std::chrono::microseconds(20), kLongestSleep = std::chrono::microseconds(200);

CudaEvent& as_cuda(Event& event) {
    auto* cuda = dynamic_cast<CudaEvent*>(&event);
    if (cuda == nullptr) {
        throw Error(ErrorCode::invalid_argument, "record or wait", "the event belongs to another device",
                    "make events with the device that made the stream");
    }
    return *cuda;
}

}  // namespace

CudaEvent::CudaEvent(int device_index, unsigned flags) : index_(device_index) {
    const ScopedCudaDevice scope(index_);
    cuda_check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
}

bool CudaEvent::done() {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) {
        static_cast<void>(cudaGetLastError());
        return false;
    }
    cuda_check(state, "cudaEventQuery");
    return true;
}

bool CudaEvent::wait(Deadline deadline) {
    const ScopedCudaDevice scope(index_);
    const auto spin_end = std::min(Clock::now() + kSpin, deadline.when());
    do {
        if (done()) return true;
    } while (Clock::now() < spin_end);
    if (deadline.is_never()) {
        cuda_check(cudaEventSynchronize(event_), "cudaEventSynchronize");
        return true;
    }
    std::chrono::nanoseconds nap = kFirstSleep;
    while (!deadline.passed()) {
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(nap, deadline.left()));
        if (done()) return true;
        nap = std::min<std::chrono::nanoseconds>(2 * nap, kLongestSleep);
    }
    return false;
}

TaskRing::TaskRing(int device_index) {
    for (TaskTable& table : tables_) {
        table.tasks.reset(allocate_pinned<CopyTask>(kTasks));
        table.free = std::make_unique<CudaEvent>(device_index);
    }
}

CopyTask* TaskRing::next() {
    current_ = (current_ + 1) % kTaskTables;
    tables_[current_].free->wait(Deadline::never());
    return tables_[current_].tasks.get();
}

void TaskRing::used(cudaStream_t stream) {
    cuda_check(cudaEventRecord(tables_[current_].free->native(), stream), "cudaEventRecord");
}

CudaStream::CudaStream(const CudaFacts& facts) : facts_(facts) {
    const ScopedCudaDevice scope(facts_.index);
    cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

CudaStream::~CudaStream() {
    const ScopedCudaDevice scope(facts_.index, std::nothrow);
    cuda_worked(cudaStreamSynchronize(stream_));
    cuda_worked(cudaStreamDestroy(stream_));
}

void CudaStream::copy(CopyDirection direction, void* destination, const void* source, std::uint64_t bytes) {
    if (bytes == 0) return;
    const auto kind = direction == CopyDirection::to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    cuda_check(cudaMemcpyAsync(destination, source, bytes, kind, stream_), "cudaMemcpyAsync");
}

void CudaStream::launch_tasks(std::uint32_t count) {
    if (count == 0) return;
    cuda_check(launch_copy_tasks(tasks_, count, facts_.processors, stream_), "launch of a copy");
    ring_->used(stream_);
}

void CudaStream::copy_batch(CopyDirection direction, std::span<const CopyPiece> pieces) {
    const ScopedCudaDevice scope(facts_.index);
    const bool by_kernel = pieces.size() > 1 && facts_.kernels_reach_pinned;
    std::uint32_t count = 0;
    for (const CopyPiece& piece : pieces) {
        if (!by_kernel || piece.bytes >= kKernelPieceBytes) {
            copy(direction, piece.destination, piece.source, piece.bytes);
            continue;
        }
        auto* to = static_cast<unsigned char*>(piece.destination);
        const auto* from = static_cast<const unsigned char*>(piece.source);
        for (std::uint64_t at = 0; at < piece.bytes; at += kTaskBytes) {
            if (!ring_) ring_ = std::make_unique<TaskRing>(facts_.index);
            if (count == 0) tasks_ = ring_->next();
            tasks_[count++] = {to + at, from + at, std::min(kTaskBytes, piece.bytes - at)};
            if (count < TaskRing::kTasks) continue;
            launch_tasks(count);
            count = 0;
        }
    }
    launch_tasks(count);
}

void CudaStream::record(Event& event) {
    cuda_check(cudaEventRecord(as_cuda(event).native(), stream_), "cudaEventRecord");
}

void CudaStream::wait(Event& event) {
    cuda_check(cudaStreamWaitEvent(stream_, as_cuda(event).native(), 0), "cudaStreamWaitEvent");
}

void CudaStream::wait_for_work(cudaStream_t later, cudaStream_t first) {
    const ScopedCudaDevice scope(facts_.index);
    if (!order_) order_ = std::make_unique<CudaEvent>(facts_.index, cudaEventDisableTiming);
    cuda_check(cudaEventRecord(order_->native(), first), "cudaEventRecord");
    cuda_check(cudaStreamWaitEvent(later, order_->native(), 0), "cudaStreamWaitEvent");
}

void CudaStream::follow(std::uintptr_t native) { wait_for_work(stream_, reinterpret_cast<cudaStream_t>(native)); }

void CudaStream::lead(std::uintptr_t native) { wait_for_work(reinterpret_cast<cudaStream_t>(native), stream_); }

void CudaStream::synchronize() { cuda_check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

// cudaStreamSynchronize takes a microsecond to notice the end, which a word in page-locked memory tells at once. Failed
// work never writes the word: then cudaStreamSynchronize tells.
void CudaStream::wait_soon(cudaStream_t stream) {
    const auto synchronize = [&] { cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); };
    if (facts_.write_value == nullptr) return synchronize();
    if (!ended_) {
        ended_.reset(allocate_pinned<std::uint32_t>(1));
        *ended_ = 0;
    }
    if (facts_.write_value(stream, reinterpret_cast<std::uintptr_t>(ended_.get()), ++ends_, 0) != 0) {
        return synchronize();
    }
    const std::atomic_ref<std::uint32_t> ended(*ended_);
    const auto spin_end = Clock::now() + kSoon;
    while (ended.load(std::memory_order_acquire) != ends_) {
        if (Clock::now() >= spin_end) return synchronize();
    }
}

// On the other stream itself: a copy of a stream of ours that follows it takes 1.7 us more, of 7 (an H200), even where
// the other one is idle.
void CudaStream::copy_after(std::uintptr_t native, const CopyPiece& piece) {
    const ScopedCudaDevice scope(facts_.index);
    const auto stream = reinterpret_cast<cudaStream_t>(native);
    cuda_check(cudaMemcpyAsync(piece.destination, piece.source, piece.bytes, cudaMemcpyHostToDevice, stream),
               "cudaMemcpyAsync");
    wait_soon(stream);
}

void CudaStream::stamp(void* memory, std::uint64_t bytes, std::uint64_t file_offset, std::uint64_t seed) {
    if (bytes == 0) return;
    const ScopedCudaDevice scope(facts_.index);
    const StampRange range{static_cast<unsigned char*>(memory), bytes, file_offset, seed};
    cuda_check(launch_stamp(range, facts_.processors, stream_), "launch of a stamp");
}

void CudaStream::ensure_results() {
    if (found_) return;
    found_host_.reset(allocate_pinned<StampResult>(1));
    void* memory = nullptr;
    cuda_check(cudaMalloc(&memory, sizeof(StampResult)), "cudaMalloc");
    found_.reset(static_cast<StampResult*>(memory));
}

StampCheck CudaStream::verify_stamp(const void* memory, std::uint64_t bytes, std::uint64_t file_offset,
                                    std::uint64_t seed) {
    if (bytes == 0) return {};
    const ScopedCudaDevice scope(facts_.index);
    ensure_results();
    *found_host_ = {0, ~0ull};
    cuda_check(cudaMemcpyAsync(found_.get(), found_host_.get(), sizeof(StampResult), cudaMemcpyHostToDevice, stream_),
               "cudaMemcpyAsync");
    // The kernel only reads through this pointer.
    const StampRange range{static_cast<unsigned char*>(const_cast<void*>(memory)), bytes, file_offset, seed};
    cuda_check(launch_verify_stamp(range, found_.get(), facts_.processors, stream_), "launch of a check of stamps");
    cuda_check(cudaMemcpyAsync(found_host_.get(), found_.get(), sizeof(StampResult), cudaMemcpyDeviceToHost, stream_),
               "cudaMemcpyAsync");
    synchronize();
    if (found_host_->bad_bytes == 0) return {};
    return {found_host_->bad_bytes, found_host_->first_bad_offset};
}

void CudaStream::fill(void* memory, std::uint64_t bytes, int byte_value) {
    if (bytes == 0) return;
    cuda_check(cudaMemsetAsync(memory, byte_value, bytes, stream_), "cudaMemsetAsync");
}

}  // namespace penstock::device
