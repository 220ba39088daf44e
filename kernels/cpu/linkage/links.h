// Links: rows of a must-link group are one region from the beginning, and regions with cannot-linked rows never merge.
//
// A cannot-link is a similarity of minus infinity, which unions inherit. So a union is still never nearer to a third
// region than the nearer of its parts, and rounds of reciprocal nearest neighbours (rounds.h) stay exact. Must-links
// merge before the first round, whatever the similarity; the similarity with a union is the mean over its objects, as
// after any other merge.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "linkage/rounds.h"

namespace gpuens {

struct Links {
    RECORD(Links,
           (Vector<const i64>, group),    // (G,): the smallest row of each row's must-link group
           (Vector<const i64>, first),    // (n_links,): rows of cannot-links
           (Vector<const i64>, second));  // (n_links,)
};

// Regions that must not merge.
class CannotLinks {
public:
    using Regions = std::unordered_set<i64>;

    CannotLinks() = default;
    explicit CannotLinks(const Links& links) {
        for (i64 i = 0; i < links.first.size; ++i) {
            partners[links.first[i]].insert(links.second[i]);
            partners[links.second[i]].insert(links.first[i]);
        }
    }

    explicit operator bool() const { return !partners.empty(); }

    // The regions that region a must not join; null for none.
    const Regions* of(i64 a) const {
        auto entry = partners.find(a);
        return entry == partners.end() ? nullptr : &entry->second;
    }

    // Let the unions of pairs of regions inherit the links of their parts.
    void unite(Vector<const i64> kept, Vector<const i64> absorbed) {
        for (i64 p = 0; p < absorbed.size; ++p) {
            auto entry = partners.extract(absorbed[p]);
            if (entry.empty()) continue;
            for (i64 r : entry.mapped()) {
                partners[r].erase(absorbed[p]);
                partners[r].insert(kept[p]);
            }
            partners[kept[p]].merge(entry.mapped());
        }
    }

private:
    std::unordered_map<i64, Regions> partners;
};

// Must-link groups, halved round by round: in a round, the regions of a group merge in pairs.
class MustLinks {
public:
    MustLinks() = default;
    explicit MustLinks(Vector<const i64> group) {
        std::unordered_map<i64, std::vector<i64>> members;
        for (i64 row = 0; row < group.size; ++row)
            if (group[row] != row) members[group[row]].push_back(row);
        for (auto& [first, others] : members) {
            others.insert(others.begin(), first);
            groups.push_back(std::move(others));
        }
    }

    // Pairs (kept, absorbed) of this round; none once each group is one region.
    std::vector<std::pair<i64, i64>> next_pairs() {
        std::vector<std::pair<i64, i64>> pairs;
        for (std::vector<i64>& regions : groups) {
            std::vector<i64> kept;
            for (std::size_t i = 0; i < regions.size(); i += 2) {
                kept.push_back(regions[i]);
                if (i + 1 < regions.size()) pairs.push_back({regions[i], regions[i + 1]});
            }
            regions = std::move(kept);
        }
        std::erase_if(groups, [](const std::vector<i64>& regions) { return regions.size() < 2; });
        std::sort(pairs.begin(), pairs.end());
        return pairs;
    }

private:
    std::vector<std::vector<i64>> groups;  // regions, ascending
};

// Join the regions that no round has merged: each, in ascending order, at similarity 0 to the first cluster that
// cannot-links allow; then all clusters, at a similarity of minus infinity.
inline void join_retired(State& state, const CannotLinks& cannot) {
    auto join = [&](i64 kept, i64 absorbed, f64 similarity) {
        state.kept.push_back(kept);
        state.absorbed.push_back(absorbed);
        state.similarities.push_back(similarity);
    };
    std::vector<i64> firsts;                          // first region of each cluster
    std::vector<i64> refused_by;                      // the last region that each cluster refuses
    std::vector<i64> cluster(state.into.size(), -1);  // the cluster of each region that is joined
    for (i64 r = 0; r < (i64)state.into.size(); ++r) {
        if (state.into[r] != r) continue;
        if (auto* partners = cannot.of(r))
            for (i64 partner : *partners)
                if (cluster[partner] >= 0) refused_by[cluster[partner]] = r;
        auto allowed = std::find_if(refused_by.begin(), refused_by.end(), [&](i64 by) { return by != r; });
        i64 c = allowed - refused_by.begin();
        if (c == (i64)firsts.size()) {
            firsts.push_back(r);
            refused_by.push_back(-1);
        } else {
            join(firsts[c], r, 0.0);
        }
        cluster[r] = c;
    }
    for (std::size_t c = 1; c < firsts.size(); ++c) join(firsts[0], firsts[c], -__builtin_inf());
}

}  // namespace gpuens
