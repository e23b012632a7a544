#!/usr/bin/env bash
# A long fuzz run, on this machine or on another one without Rust and without a network.
#
#   fuzz/campaign.sh pack FILE.tar.xz [REPOSITORY]
#       builds all targets of a repository (this one) and packs them with their corpora and this script
#   ./campaign.sh run SECONDS OUT [PROCESSES]
#       run from the unpacked folder: fuzzes all targets at once for SECONDS, with PROCESSES processes
#       each (default 2), and then minimises the corpora for up to a minute. Writes at most 8 files of at
#       most 16 MiB to OUT: summary.txt, logs, findings and corpora.
#
# To keep the corpora, unpack corpus.tar.xz in fuzz/ and run `cargo xtask fuzz --minimise`.
set -euo pipefail

pack() {
    local file=$1 repository=${2:-$(dirname "$0")/..} here folder target
    here=$(realpath "$0")
    mkdir -p "$(dirname "$file")"
    file=$(realpath "$file")
    cd "$repository"
    cargo xtask fuzz --build
    folder=$(mktemp -d)
    # Expanded now, because the variable is local.
    trap "rm -rf '$folder'" EXIT
    mkdir "$folder/targets" "$folder/corpus"
    for target in fuzz/fuzz_targets/*.rs; do
        target=$(basename "$target" .rs)
        strip --strip-debug -o "$folder/targets/$target" "fuzz/target/x86_64-unknown-linux-gnu/release/$target"
        cp -r "fuzz/corpus/$target" "$folder/corpus/"
    done
    cp "$here" "$folder/campaign.sh"
    tar -C "$folder" -c . | xz -T0 -6 --lzma2=dict=64MiB > "$file"
    ls -l "$file"
}

# Fuzzes one target until the time is up, restarting after a finding.
fuzz_one() {
    local target=$1 number=$2 end=$3 left
    for attempt in $(seq 50); do
        left=$((end - $(date +%s)))
        [ "$left" -gt 0 ] || break
        "targets/$target" -max_total_time="$left" -rss_limit_mb=3000 -timeout=60 -print_final_stats=1 \
            -reload=1 -artifact_prefix="artifacts/$target-" "corpus/$target" \
            > "logs/$target-$number-$attempt.log" 2>&1 && break
    done
}

# Keeps the inputs that add coverage, or all of them if that takes too long.
merge_one() {
    local target=$1
    mkdir -p "merged/corpus/$target"
    if ! timeout 55 "targets/$target" -merge=1 -rss_limit_mb=3000 -timeout=60 \
        "merged/corpus/$target" "corpus/$target" > "logs/$target-merge.log" 2>&1; then
        echo "not minimised" >> "logs/$target-merge.log"
        cp -r "corpus/$target" merged/corpus/
    fi
}

summarise() {
    local target executed found
    printf '%-14s %14s %9s %9s %9s %8s\n' target executions coverage features inputs findings
    for target in targets/*; do
        target=$(basename "$target")
        executed=$(cat "logs/$target"-*.log | awk '/stat::number_of_executed_units/ {n += $2} END {print n + 0}')
        found=$(find artifacts -name "$target-*" | wc -l)
        printf '%-14s %14s %9s %9s %9s %8s\n' "$target" "$executed" \
            "$(cat "logs/$target"-*.log | grep -o 'cov: [0-9]*' | sort -k2 -n | tail -n 1 | cut -c6-)" \
            "$(cat "logs/$target"-*.log | grep -o 'ft: [0-9]*' | sort -k2 -n | tail -n 1 | cut -c5-)" \
            "$(find "merged/corpus/$target" -type f | wc -l)" "$found"
    done
    grep -l "not minimised" logs/*-merge.log || true
}

run() {
    local seconds=$1 out processes=${3:-2} end target
    mkdir -p "$2"
    out=$(realpath "$2")
    cd "$(dirname "$0")"
    mkdir -p logs artifacts merged/corpus
    end=$(($(date +%s) + seconds))
    for target in targets/*; do
        for number in $(seq "$processes"); do
            fuzz_one "$(basename "$target")" "$number" "$end" &
        done
    done
    wait
    for target in targets/*; do
        merge_one "$(basename "$target")" &
    done
    wait
    summarise | tee "$out/summary.txt"
    tar -c artifacts | xz -T0 | head -c 16M > "$out/artifacts.tar.xz"
    # libFuzzer's progress lines are not needed after the summary.
    for log in logs/*.log; do
        tail -n 2000 "$log" > logs/short && mv logs/short "$log"
    done
    tar -c logs | xz -T0 | head -c 16M > "$out/logs.tar.xz"
    tar -C merged --sort=name --mtime=@0 -c corpus | xz -T0 -6 > merged/corpus.tar.xz
    if [ "$(stat -c %s merged/corpus.tar.xz)" -le $((16 << 20)) ]; then
        cp merged/corpus.tar.xz "$out/"
    else
        # Join the parts with cat.
        split -b 16M -d merged/corpus.tar.xz "$out/corpus.tar.xz."
    fi
}

case "${1:-}" in
pack) pack "${@:2}" ;;
run) run "${@:2}" ;;
*) sed -n '2,/^set/ s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
