// See nbody_model.hpp.
#include "nbody/nbody_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "penstock/stamp.hpp"

namespace penstock::nbody {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr std::int64_t kMostBodies = std::int64_t{1} << 28;

[[noreturn]] void refuse_cluster(std::string cause, std::string advice) {
    throw Error(ErrorCode::invalid_argument, "make a cluster", std::move(cause), std::move(advice));
}

// Numbers in (0, 1), the same on each machine.
class Draws {
  public:
    explicit Draws(std::uint64_t seed) : seed_(seed) {}
    double next() { return (static_cast<double>(stamp_word(seed_, number_++) >> 11) + 0.5) * 0x1p-53; }
    // Of that length, in any direction.
    Vector direction(double length) {
        const double z = 2 * next() - 1, angle = 2 * kPi * next(), across = std::sqrt(1 - z * z);
        return {length * across * std::cos(angle), length * across * std::sin(angle), length * z};
    }

  private:
    std::uint64_t seed_, number_ = 0;
};

// The sphere of Plummer by Aarseth, Henon and Wielen (1974), in units in which the virial radius is 1.
struct Placed {
    std::vector<double> position, velocity;
};
Placed plummer(std::int64_t count, std::uint64_t seed) {
    constexpr double scale = 3 * kPi / 16;
    Placed made;
    made.position.resize(static_cast<std::size_t>(3 * count));
    made.velocity.resize(static_cast<std::size_t>(3 * count));
    Draws draws(seed);
    for (std::int64_t i = 0; i < count; ++i) {
        const double r = 1 / std::sqrt(std::pow(0.999 * draws.next(), -2.0 / 3) - 1);
        double q = 0, height = 1;
        while (height > q * q * std::pow(1 - q * q, 3.5)) {
            q = draws.next();
            height = 0.1 * draws.next();
        }
        const double speed = q * std::sqrt(2.0) * std::pow(1 + r * r, -0.25);
        put(made.position.data(), i, draws.direction(scale * r));
        put(made.velocity.data(), i, draws.direction(speed / std::sqrt(scale)));
    }
    return made;
}

// The middle does not move.
void centre(std::vector<double>& values) {
    const std::size_t count = values.size() / 3;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        double mean = 0;
        for (std::size_t i = 0; i < count; ++i) mean += values[3 * i + axis] / static_cast<double>(count);
        for (std::size_t i = 0; i < count; ++i) values[3 * i + axis] -= mean;
    }
}

}  // namespace

Cluster::Cluster(const Context& context, const ClusterOptions& options) : context_(context), options_(options) {
    if (options.bodies < 2 || options.bodies > kMostBodies)
        refuse_cluster(std::to_string(options.bodies) + " bodies are asked for", "use 2 to 268435456");
    if (!(options.softening >= 0) || !(options.accuracy > 0) || !(options.accuracy < 1))
        refuse_cluster("the softening or the accuracy is out of range", "use 0 or more, and less than 1");
    all_.count = options.bodies;
    engine_ = context.device().info().emulated ? make_body_engine_of_host(options.threads)
                                               : make_body_engine_of_gpu(context);
    place_arrays();
    fill();
}

void Cluster::place_arrays() {
    const auto count = static_cast<std::uint64_t>(all_.count);
    memory_ = context_.allocate(count * (3 * 4 + 1 + 6 + 3) * sizeof(double), MemoryKind::device);
    auto* next = static_cast<double*>(memory_.data());
    const auto take = [&](std::uint64_t each) { return std::exchange(next, next + each * count); };
    all_.position = take(3);
    all_.velocity = take(3);
    all_.acceleration = take(3);
    all_.jerk = take(3);
    all_.mass = take(1);
    all_.scratch = take(6);
    all_.began = reinterpret_cast<std::int64_t*>(take(1));
    all_.step = reinterpret_cast<std::int64_t*>(take(1));
    ids_ = reinterpret_cast<std::uint64_t*>(take(1));
}

template <typename Number>
void Cluster::upload(Number* to, const std::vector<Number>& values) {
    context_.copy_to_device(to, values.data(), values.size() * sizeof(Number));
}

template <typename Number>
std::vector<Number> Cluster::on_host(const Number* values, std::int64_t count) const {
    std::vector<Number> found(static_cast<std::size_t>(count));
    context_.copy_to_host(found.data(), values, found.size() * sizeof(Number));
    return found;
}

void Cluster::fill() {
    const auto count = static_cast<std::size_t>(all_.count);
    Placed placed = plummer(all_.count, options_.seed);
    centre(placed.position);
    centre(placed.velocity);
    std::vector<std::uint64_t> ids(count);
    std::iota(ids.begin(), ids.end(), std::uint64_t{1});
    upload(all_.position, placed.position);
    upload(all_.velocity, placed.velocity);
    upload(all_.acceleration, std::vector<double>(3 * count));
    upload(all_.jerk, std::vector<double>(3 * count));
    upload(all_.mass, std::vector<double>(count, 1.0 / static_cast<double>(count)));
    upload(all_.began, std::vector<std::int64_t>(count));
    upload(all_.step, std::vector<std::int64_t>(count));
    upload(ids_, ids);
    engine_->run(Evaluate{all_, 0, options_.softening, true});
    engine_->run(Correct{all_, 0, options_.accuracy, true});
    engine_->wait();
}

void Cluster::advance(std::int64_t longest_steps) {
    for (const std::int64_t end = tick_ + longest_steps * kLongestStep; tick_ < end;) {
        ++tick_;
        engine_->run(Evaluate{all_, tick_, options_.softening, false});
        engine_->run(Correct{all_, tick_, options_.accuracy, false});
    }
    engine_->wait();
}

std::vector<std::byte> Cluster::state() const {
    std::vector<std::byte> bits(memory_.bytes());
    context_.copy_to_host(bits.data(), memory_.data(), bits.size());
    const auto scratch = bits.begin() + (reinterpret_cast<const std::byte*>(all_.scratch) -
                                         static_cast<const std::byte*>(memory_.data()));
    bits.erase(scratch, scratch + static_cast<std::ptrdiff_t>(6 * sizeof(double)) * all_.count);
    return bits;
}

double Cluster::energy() const {
    const std::vector<double> position = on_host(all_.position, 3 * all_.count);
    const std::vector<double> velocity = on_host(all_.velocity, 3 * all_.count);
    const std::vector<double> mass = on_host(all_.mass, all_.count);
    double energy = 0;
    for (std::int64_t i = 0; i < all_.count; ++i) {
        const double mine = mass[static_cast<std::size_t>(i)];
        const Vector v = at(velocity.data(), i);
        energy += mine * dot(v, v) / 2;
        for (std::int64_t k = 0; k < i; ++k) {
            const Vector r = sum(at(position.data(), k), -1, at(position.data(), i));
            const double distance = std::sqrt(dot(r, r) + options_.softening * options_.softening);
            energy -= mine * mass[static_cast<std::size_t>(k)] / distance;
        }
    }
    return energy;
}

void Cluster::describe(Restart& restart) {
    const auto count = static_cast<std::uint64_t>(all_.count);
    restart.set_field({"bodies/position", "float64", {count, 3}, all_.position});
    restart.set_field({"bodies/velocity", "float64", {count, 3}, all_.velocity});
    restart.set_field({"bodies/acceleration", "float64", {count, 3}, all_.acceleration});
    restart.set_field({"bodies/jerk", "float64", {count, 3}, all_.jerk});
    restart.set_field({"bodies/mass", "float64", {count}, all_.mass});
    restart.set_field({"bodies/began", "int64", {count}, all_.began});
    restart.set_field({"bodies/step", "int64", {count}, all_.step});
    restart.set_field({"bodies/id", "uint64", {count}, ids_});
    restart.set_attribute(snapshot_scalar("tick", tick_));
    restart.set_attribute(snapshot_scalar("softening", options_.softening));
    restart.set_attribute(snapshot_scalar("accuracy", options_.accuracy));
}

void Cluster::resume(const Restart& restart) {
    const auto number = [&](const char* name, auto& value) {
        const SnapshotAttribute found = restart.attribute(name);
        std::memcpy(&value, found.values.data(), std::min(sizeof value, found.values.size()));
    };
    number("tick", tick_);
    number("softening", options_.softening);
    number("accuracy", options_.accuracy);
}

SnapshotFacts Cluster::write_snapshot(const std::string& name, bool durable) const {
    const auto count = static_cast<std::uint64_t>(all_.count);
    SnapshotOptions options;
    options.durable = durable;
    Snapshot snapshot(context_, name, options);
    snapshot.add_dataset({"PartType1/Coordinates", "float64", {count, 3}});
    snapshot.add_dataset({"PartType1/Velocities", "float64", {count, 3}});
    snapshot.add_dataset({"PartType1/Masses", "float64", {count}});
    snapshot.add_dataset({"PartType1/ParticleIDs", "uint64", {count}});
    SnapshotPreset preset;
    preset.layout = "gadget4";
    preset.time = time();
    preset.is_periodic = false;
    snapshot.use_preset(preset);
    return snapshot.write({{"PartType1/Coordinates", all_.position, count * 3 * sizeof(double)},
                           {"PartType1/Velocities", all_.velocity, count * 3 * sizeof(double)},
                           {"PartType1/Masses", all_.mass, count * sizeof(double)},
                           {"PartType1/ParticleIDs", ids_, count * sizeof(std::uint64_t)}});
}

}  // namespace penstock::nbody
