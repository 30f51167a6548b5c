// A thread that uses a channel at random and knows what every byte must be: the clients of the conformance kit.
//
// Each client has a range of the storage of its own, cut into cells. A cell has one request at a time. After a failed
// write it holds what it held. After a write that timed out, its content is unknown until the ticket has settled; then
// the client writes it anew.
#pragma once

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice::kit {

struct ClientPlan {
    u32 requests = 1000;
    u32 outstanding = 4;
    u32 cells = 12;
    u32 cell_bytes = 512;
    u64 first_byte = 0;
    u64 deadline_ns = 30'000'000'000;
    unsigned seed = 1;
};

struct Tally {
    u64 ok = 0;
    u64 errors = 0;
    u64 timeouts = 0;
    u64 busy = 0;
    u64 mismatches = 0;  // reads with a wrong byte
    u64 surprises = 0;   // statuses that may not come
    void operator+=(const Tally& other) {
        ok += other.ok;
        errors += other.errors;
        timeouts += other.timeouts;
        busy += other.busy;
        mismatches += other.mismatches;
        surprises += other.surprises;
    }
};

template <class Channel>
class Client {
  public:
    Client(const Channel& channel, const ClientPlan& plan)
        : channel_(channel), plan_(plan), random_(plan.seed), cells_(plan.cells) {
        for (Cell& cell : cells_) cell.bytes.assign(plan.cell_bytes, 0);
    }

    Tally run() {
        u32 started = 0;
        while (started < plan_.requests || !flights_.empty()) {
            const bool more = started < plan_.requests && flights_.size() < plan_.outstanding;
            if (more && start()) started += 1;
            else if (!flights_.empty()) look();
            else Native::pause(0);
            settle();
        }
        while (!unsettled_.empty()) settle();
        return tally_;
    }

  private:
    struct Cell {
        std::vector<u8> bytes;
        bool taken = false;
        bool known = true;
    };
    struct Flight {
        u32 ticket;
        u32 cell;
        RequestOperation operation;
        u32 bytes;
        std::vector<u8> written;
        u64 deadline_ns;
    };
    struct Unsettled {
        u32 ticket;
        u32 cell;
    };

    bool start() {
        const u32 index = static_cast<u32>(random_() % cells_.size());
        Cell& cell = cells_[index];
        if (cell.taken) return false;
        Flight flight{0, index, RequestOperation::read, 0, {}, Native::now_ns() + plan_.deadline_ns};
        const unsigned die = static_cast<unsigned>(random_() % 100);
        if (die < 50 || !cell.known) flight.operation = RequestOperation::write;
        else if (die < 55) flight.operation = RequestOperation::flush;
        const u32 units = plan_.cell_bytes / 512;
        flight.bytes = cell.known ? 512 * (1 + static_cast<u32>(random_() % units)) : plan_.cell_bytes;
        if (flight.operation == RequestOperation::flush) flight.bytes = 0;
        const Status status = send(flight);
        if (status == Status::busy) tally_.busy += 1;
        else if (status != Status::ok) tally_.surprises += 1;
        if (status != Status::ok) return false;
        cell.taken = true;
        flights_.push_back(std::move(flight));
        return true;
    }

    Status send(Flight& flight) {
        const u64 offset = plan_.first_byte + u64{flight.cell} * plan_.cell_bytes;
        const Request request{offset, 0, flight.bytes, 0, flight.operation, 0};
        if (flight.operation != RequestOperation::write) return channel_.submit(request, flight.ticket);
        Status status = channel_.claim(flight.ticket);
        if (status != Status::ok) return status;
        flight.written.resize(flight.bytes);
        for (u8& byte : flight.written) byte = static_cast<u8>(random_());
        std::memcpy(channel_.slot_data(flight.ticket), flight.written.data(), flight.bytes);
        status = channel_.publish(flight.ticket, request);
        if (status != Status::ok) channel_.release(flight.ticket);
        return status;
    }

    void look() {
        const std::size_t at = random_() % flights_.size();
        const bool over = Native::now_ns() >= flights_[at].deadline_ns;
        const u32 ticket = flights_[at].ticket;
        const Status status = over ? channel_.wait(ticket, flights_[at].deadline_ns) : channel_.test(ticket);
        if (status == Status::pending) return Native::pause(0);
        const Flight flight = std::move(flights_[at]);
        flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(at));
        end(flight, status);
    }

    void end(const Flight& flight, Status status) {
        Cell& cell = cells_[flight.cell];
        if (status == Status::timed_out) {
            tally_.timeouts += 1;
            if (flight.operation == RequestOperation::write) cell.known = false;
            unsettled_.push_back({flight.ticket, flight.cell});
            return;
        }
        if (status == Status::ok) accept(flight, cell);
        else if (status == Status::io_error) tally_.errors += 1;
        else tally_.surprises += 1;
        if (channel_.test(flight.ticket) != Status::invalid) tally_.surprises += 1;
        cell.taken = false;
        channel_.release(flight.ticket);
    }

    void accept(const Flight& flight, Cell& cell) {
        tally_.ok += 1;
        if (flight.operation == RequestOperation::read) {
            const bool same = std::memcmp(channel_.slot_data(flight.ticket), cell.bytes.data(), flight.bytes) == 0;
            if (!same && cell.known) tally_.mismatches += 1;
        } else if (flight.operation == RequestOperation::write) {
            std::memcpy(cell.bytes.data(), flight.written.data(), flight.bytes);
            if (flight.bytes == plan_.cell_bytes) cell.known = true;
        }
    }

    void settle() {
        for (std::size_t at = 0; at < unsettled_.size();) {
            if (!channel_.settled(unsettled_[at].ticket)) {
                ++at;
                continue;
            }
            cells_[unsettled_[at].cell].taken = false;
            unsettled_.erase(unsettled_.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }

    Channel channel_;
    ClientPlan plan_;
    std::mt19937 random_;
    std::vector<Cell> cells_;
    std::vector<Flight> flights_;
    std::vector<Unsettled> unsettled_;
    Tally tally_;
};

}  // namespace penstock::ondevice::kit
