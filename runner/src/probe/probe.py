"""The measuring program of `trainplan probe`.

One process per GPU, started by srun (or torchrun, or alone). It measures what this
cluster's GPUs, memory and network really reach; rank 0 writes the results as JSON.
It needs PyTorch 1.13 or newer and nothing else. A measurement that fails lands in
"skipped" with its reason and stops no other. The file is written anew after every
measurement, so that a job killed half-way leaves what it had measured.
"""
import argparse
import datetime
import json
import math
import os
import socket
import statistics
import sys
import time
from types import SimpleNamespace

try:
    import torch
    import torch.distributed as dist
    TORCH_ERROR = None
except (ImportError, OSError) as error:  # OSError: a library of CUDA's is missing
    TORCH_ERROR = error

GROUP_TIMEOUT = datetime.timedelta(seconds=120)
STORE_TIMEOUT = datetime.timedelta(seconds=180)  # longer: who waits here outlasts a stuck group
MIB = 1 << 20
GPU_SHAPES = [  # (m, n, k): an (m, k) times a (k, n) matrix, as large as in transformer layers
    (2048, 2048, 13312), (4096, 4096, 4096), (4096, 4096, 8192), (8192, 8192, 8192),
    (8192, 4096, 4096), (8192, 16384, 4096), (8192, 4096, 16384), (16384, 8192, 1280),
    (16384, 2048, 8192), (4096, 16384, 8192), (8192, 2560, 8192), (16384, 16384, 4096)]
CPU_SHAPES = [(128, 128, 128), (256, 128, 128), (128, 256, 256)]
KINDS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "point-to-point"]


# ---- The ranks and how they agree ----

def find_place() -> SimpleNamespace:
    """Rank, world size, local rank and node of this process, from Slurm, else from torchrun."""
    env = os.environ
    if "SLURM_PROCID" in env and "SLURM_NTASKS" in env and "TORCHELASTIC_RUN_ID" not in env:
        rank, world = int(env["SLURM_PROCID"]), int(env["SLURM_NTASKS"])
        nodes = int(env.get("SLURM_JOB_NUM_NODES") or env.get("SLURM_NNODES") or 1)
        per_node = max(1, -(-world // nodes))
        local, node = env.get("SLURM_LOCALID", rank % per_node), env.get("SLURM_NODEID", rank // per_node)
    else:
        rank, world = int(env.get("RANK", 0)), int(env.get("WORLD_SIZE", 1))
        per_node = max(1, int(env.get("LOCAL_WORLD_SIZE", world)))
        local, node = env.get("LOCAL_RANK", rank % per_node), rank // per_node
    return SimpleNamespace(rank=rank, world=world, local=int(local), node=int(node))


def connect(job):
    """Meet the other ranks at MASTER_ADDR:MASTER_PORT; returns the shared key-value store."""
    from torch.distributed.rendezvous import rendezvous
    os.environ.update(RANK=str(job.rank), WORLD_SIZE=str(job.world))
    os.environ.setdefault("MASTER_PORT", "29500")
    if job.node == 0:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    if "MASTER_ADDR" not in os.environ:
        raise RuntimeError("MASTER_ADDR must be the host of rank 0")
    if job.rank == 0:
        print("trainplan probe: waiting for %d processes at %s:%s" % (
            job.world, os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]), flush=True)
    return next(iter(rendezvous("env://", timeout=GROUP_TIMEOUT)))[0]


def make_gather(store, rank: int, world: int):
    """Returns gather(value): the list of every rank's value (JSON), on every rank.

    It uses the store and no process group, so the ranks can agree on what failed even
    if NCCL does not work. It is also the barrier: all ranks measure at the same time.
    """
    turn = 0

    def gather(value):
        nonlocal turn
        turn += 1
        if world == 1:
            return [value]
        store.set("probe/%d/%d" % (turn, rank), json.dumps(value))
        if rank == 0:
            values = [json.loads(store.get("probe/%d/%d" % (turn, r))) for r in range(world)]
            store.set("probe/%d/all" % turn, json.dumps(values))
        return json.loads(store.get("probe/%d/all" % turn))

    return gather


def short(error) -> str:
    """An exception as one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


def agree(job, function, *arguments):
    """Run function on all ranks; returns every rank's value, and its failure's reason ("": none).

    A rank that fails tells the others before anyone goes on, so that all skip the same step.
    """
    value, reason = None, ""
    try:
        value = function(job, *arguments)
    except Exception as error:
        reason = short(error)
    values, reasons = zip(*job.gather([value, reason]))
    return list(values), list(reasons)


def cause(reasons: list) -> str:
    """The reason that explains most: a rank that timed out only waited for one that failed."""
    return min(filter(None, reasons), key=lambda reason: "timed out" in reason.lower())


def attempt(job, name: str, function, *arguments) -> list:
    """A measurement that needs no other rank: every rank's value, None where it failed."""
    values, reasons = agree(job, function, *arguments)
    free_cache(job)
    failed = [rank for rank, reason in enumerate(reasons) if reason]
    if failed:
        where = " (rank %d on %s; %d of %d ranks)" % (
            failed[0], job.places[failed[0]][2], len(failed), job.world)
        skip(job, name, reasons[failed[0]] + (where if len(failed) < job.world else ""))
    return values


def free_cache(job) -> None:
    if job.gpu:
        try:
            torch.cuda.empty_cache()
        except RuntimeError:
            pass  # the GPU is in an error state; the measurements say so


def say(job, text: str) -> None:
    if job.rank == 0:
        print("trainplan probe: " + text, flush=True)


def skip(job, measurement: str, reason: str) -> None:
    job.result["skipped"].append({"measurement": measurement, "reason": reason})
    say(job, "%s: skipped: %s" % (measurement, reason))


def save(job, done: str = "") -> None:
    """Rank 0 replaces the output file in one step; what is not done yet counts as skipped."""
    job.pending = [name for name in job.pending if name != done]
    if job.rank != 0:
        return
    result = dict(job.result, seconds=round(time.perf_counter() - job.start, 2))
    result["skipped"] = result["skipped"] + [
        {"measurement": name, "reason": "the probe ended before this was measured"} for name in job.pending]
    temporary = "%s.%d.tmp" % (job.output, os.getpid())
    with open(temporary, "w") as file:
        json.dump(result, file, indent=1, allow_nan=False)
    os.replace(temporary, job.output)


# ---- Timing ----

def number(value: float) -> float:
    """Five significant digits; refuses infinity and NaN, which JSON cannot hold."""
    if not math.isfinite(value):
        raise ValueError("the measured value is not finite")
    return float("%.5g" % value)


def wait(job) -> None:
    if job.gpu:
        torch.cuda.synchronize()


def seconds_per_call(job, call, calls: int) -> float:
    """Mean time of calls in a row: CUDA events on a GPU, the clock on a CPU."""
    if not job.gpu:
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - begin) / calls
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(calls):
        call()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1000 / calls


def median_seconds(job, call, budget: float) -> float:
    """Median over up to 30 batches of about 50 ms each, fewer when the budget is used up."""
    stop, times = time.perf_counter() + budget, []
    call()
    wait(job)
    once = seconds_per_call(job, call, 1)
    calls = max(1, min(1000, int(min(0.05, budget / 3) / max(once, 1e-7))))
    while not times or (len(times) < 30 and time.perf_counter() < stop):
        times.append(seconds_per_call(job, call, calls))
    return statistics.median(times)


# ---- One GPU ----

def memory(job) -> list:
    """Total and free bytes of GPU memory: first with only the CUDA context there, and again
    after the collectives, when NCCL's buffers and cuBLAS' workspaces take their part as in training."""
    if not job.gpu:
        raise RuntimeError("there is no GPU")
    torch.zeros(1, device=job.device)
    wait(job)
    free, total = torch.cuda.mem_get_info(job.device)
    return [int(total), int(free)]


def matmuls(job, precision: str, prepare, budget: float) -> list:
    """TFLOPS (2 m n k / time) of each shape, after a warm-up so that the clocks settle.

    Inputs are random: zeros need less power and let the GPU clock higher than training
    does. All GPUs run at once, as in training, so they share power and cooling.
    """
    shapes = GPU_SHAPES if job.gpu else CPU_SHAPES
    call = prepare(job, *shapes[1])
    stop = time.perf_counter() + min(2.0 if job.gpu else 0.1, budget / 4)
    while time.perf_counter() < stop:
        for _ in range(20 if job.gpu else 1):
            call()
        wait(job)
    found = []
    for m, n, k in shapes:
        seconds = median_seconds(job, prepare(job, m, n, k), budget / len(shapes))
        found.append({"precision": precision, "m": m, "n": n, "k": k,
                      "tflops": number(2 * m * n * k / seconds / 1e12)})
    return found


def bf16_matmul(job, m: int, n: int, k: int):
    """x (m, k) times the transpose of a weight (n, k), as a linear layer does."""
    x = torch.randn(m, k, device=job.device).mul_(0.1).to(torch.bfloat16)
    weight = torch.randn(n, k, device=job.device).mul_(0.1).to(torch.bfloat16)
    out = torch.empty(m, n, device=job.device, dtype=torch.bfloat16)
    return lambda: torch.matmul(x, weight.t(), out=out)


def fp8_matmul(job, m: int, n: int, k: int):
    """The same in FP8 with one scale per tensor and a bf16 result (torch._scaled_mm).

    The second matrix has to be column major, which a transposed weight is. Old versions
    return a tuple (unused here) and do not know use_fast_accum.
    """
    if not job.gpu or not hasattr(torch, "_scaled_mm"):
        raise RuntimeError("FP8 needs a GPU and a PyTorch with torch._scaled_mm (2.1 or newer)")
    dtype = torch.float8_e4m3fn
    if torch.version.hip:  # AMD's capability numbers mean something else
        name = getattr(torch.cuda.get_device_properties(job.device), "gcnArchName", "unknown")
        if not name.startswith(("gfx94", "gfx95", "gfx12")):
            raise RuntimeError("this GPU (%s) has no FP8" % name)
        dtype = torch.float8_e4m3fnuz if name.startswith("gfx94") else dtype
    elif torch.cuda.get_device_capability(job.device) < (8, 9):
        raise RuntimeError("this GPU has no FP8 (compute capability %d.%d, 8.9 is needed)"
                           % torch.cuda.get_device_capability(job.device))
    x = torch.randn(m, k, device=job.device).mul_(0.1).to(dtype)
    weight = torch.randn(n, k, device=job.device).mul_(0.1).to(dtype).t()
    one = torch.ones((), device=job.device)
    options = dict(scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    try:
        torch._scaled_mm(x, weight, **options)
    except TypeError:  # PyTorch 2.1
        del options["use_fast_accum"]
    return lambda: torch._scaled_mm(x, weight, **options)


def attention(job, budget: float) -> list:
    """TFLOPS of causal attention with the kernel PyTorch picks (scaled_dot_product_attention).

    Half of the score matrix counts, as it is causal: 4 b h s^2 d / 2 forward, and 2.5
    times that backward, where FlashAttention computes the scores again.
    """
    function = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    if function is None:
        raise RuntimeError("PyTorch %s has no scaled_dot_product_attention" % torch.__version__)
    sequence, heads, size = (8192, 32, 128) if job.gpu else (256, 2, 128)
    q, k, v, gradient = (torch.randn(1, heads, sequence, size, device=job.device).to(torch.bfloat16)
                         for _ in range(4))
    inputs = [tensor.requires_grad_() for tensor in (q, k, v)]

    def forward():
        with torch.no_grad():
            function(q, k, v, is_causal=True)

    def both():
        torch.autograd.grad(function(q, k, v, is_causal=True), inputs, gradient)

    work, found = 4 * heads * sequence * sequence * size / 2, []
    for name, call, factor in (("forward", forward, 1.0), ("forward and backward", both, 3.5)):
        seconds = median_seconds(job, call, budget / 2)
        found.append({"pass": name, "sequence": sequence, "heads": heads, "head_size": size,
                      "tflops": number(factor * work / seconds / 1e12)})
    return found


def memory_bandwidth(job, budget: float) -> float:
    """GB/s of a copy, bytes read plus bytes written; larger than any cache, so it shows the memory."""
    source = torch.ones(1024 * MIB if job.gpu else 32 * MIB, device=job.device, dtype=torch.uint8)
    target = torch.empty_like(source)
    seconds = median_seconds(job, lambda: target.copy_(source), budget)
    return number(2 * source.numel() / seconds / 1e9)


def kernel_launch(job, budget: float) -> float:
    """Microseconds the host needs per operation: queues 2000 tiny ones and stops the clock before
    the GPU is done. This bounds a model of many small kernels, however fast the GPU is."""
    x = torch.zeros(1, device=job.device)
    stop, times = time.perf_counter() + budget, []
    while len(times) < 2 or (len(times) < 12 and time.perf_counter() < stop):
        wait(job)
        begin = time.perf_counter()
        for _ in range(2000):
            x.add_(1.0)
        times.append((time.perf_counter() - begin) / 2000 * 1e6)
    return number(statistics.median(times[1:]))  # the first round warms up


# ---- Collectives ----

def make_groups(job) -> dict:
    """Start NCCL or gloo; returns this rank's groups, {scope: (group, ranks)}.

    "node" holds the ranks of one node, "network" one rank of each node, those with the
    same local rank. Every rank creates every group, in the same order.
    """
    dist.init_process_group(job.result["backend"], store=dist.PrefixStore("group", job.store),
                            rank=job.rank, world_size=job.world, timeout=GROUP_TIMEOUT)
    for scope, key in (("node", 0), ("network", 1)):
        for value in sorted({place[key] for place in job.places}):
            ranks = [rank for rank, place in enumerate(job.places) if place[key] == value]
            group = dist.new_group(ranks, timeout=GROUP_TIMEOUT) if len(ranks) > 1 else None
            if group is not None and job.rank in ranks:
                job.groups[scope] = (group, ranks)


def prepare_collective(job, kind: str, group, ranks: list, size: int):
    """Buffers for one collective: returns a function that runs it once, and its bytes.

    The bytes are nccl-tests' size: the larger buffer of a rank. Point-to-point is an
    exchange: both ranks of a pair send and receive at once; an odd last rank is idle.
    """
    dtype, width = (torch.bfloat16, 2) if job.gpu else (torch.float32, 4)
    n, partner = len(ranks), ranks.index(job.rank) ^ 1
    count = max(1, size // width // (8 * n)) * 8 * n  # whole 16 bytes per rank
    big = torch.zeros(count, device=job.device, dtype=dtype)
    part, other = torch.zeros_like(big[:count // n]), torch.zeros_like(big)
    if kind == "all-gather" and not job.gpu:  # gloo has only the form with a list
        parts = list(big.chunk(n))
        return (lambda: dist.all_gather(parts, part, group=group)), count * width

    def exchange():
        if partner < n:
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, big, ranks[partner], group),
                                                dist.P2POp(dist.irecv, other, ranks[partner], group)]):
                work.wait()

    return {"all-reduce": lambda: dist.all_reduce(big, group=group),
            "all-gather": lambda: dist.all_gather_into_tensor(big, part, group=group),
            "reduce-scatter": lambda: dist.reduce_scatter_tensor(part, big, group=group),
            "all-to-all": lambda: dist.all_to_all_single(other, big, group=group),
            "point-to-point": exchange}[kind], count * width


def time_collective(job, kind: str, scope: str, size: int, share: float):
    """Time one collective of one size in all groups of the scope at once; (record, reason to skip).

    At once, because data parallelism does so: each GPU uses its own adapter, and they
    compete. All ranks make the same number of calls, set by the slowest first call. The
    time is the median over rounds of calls in a row, of the slowest rank.
    """
    group, ranks = job.groups[scope]
    made = []
    _, reasons = agree(job, lambda job: made.extend(prepare_collective(job, kind, group, ranks, size)))
    if any(reasons):
        return None, cause(reasons)
    call, size = made

    def first(job):
        for _ in range(2):  # the very first call connects
            call()
        wait(job)
        return seconds_per_call(job, call, 1)

    values, reasons = agree(job, first)
    if any(reasons):
        return None, cause(reasons)
    once = max(1e-6, max(values))
    calls = max(1, min(100, int(min(0.05, share / 4) / once)))
    rounds = max(1, min(15, int(share / (once * (calls + 1)))))

    def median(job):
        times = []
        for _ in range(rounds):
            call()  # not timed: brings the ranks together
            times.append(seconds_per_call(job, call, calls))
        return statistics.median(times)

    values, reasons = agree(job, median)
    if any(reasons):
        return None, cause(reasons)
    n, seconds = len(ranks), max(values)
    factor = {"all-reduce": 2 * (n - 1) / n, "point-to-point": 1.0}.get(kind, (n - 1) / n)
    return {"kind": kind, "scope": scope, "ranks": n, "bytes": size, "time_s": number(seconds),
            "bus_gbps": number(factor * size / seconds / 1e9)}, ""


def collectives(job) -> None:
    """All kinds, scopes and sizes; NCCL (RCCL) with bf16 on GPUs, gloo with fp32 on CPUs."""
    if job.world == 1:
        return skip(job, "collectives", "there is only one process")
    if job.result["backend"] is None:
        return skip(job, "collectives", "this PyTorch has no NCCL")
    nodes = {place[0] for place in job.places}
    if len({str(sorted(p[1] for p in job.places if p[0] == node)) for node in nodes}) > 1:
        return skip(job, "collectives", "the nodes have different numbers of processes")
    _, reasons = agree(job, make_groups)
    if any(reasons):
        return skip(job, "collectives", cause(reasons))
    sizes = [1024, 4 * MIB, 64 * MIB, 256 * MIB] if job.gpu else [1024, 64 * 1024, MIB]
    cases = len(job.groups) * len(KINDS) * len(sizes)
    for scope, kind in [(scope, kind) for scope in job.groups for kind in KINDS]:
        for size in sizes:
            left = job.gather(job.deadline - time.perf_counter())[0]  # rank 0's clock counts for all
            record, reason = None, "the time was over"
            if left > 0:
                share = min(5.0 if job.gpu else 0.2, left / cases)
                record, reason = time_collective(job, kind, scope, size, share)
            free_cache(job)
            if reason:
                skip(job, "%s, %s, from %d bytes" % (kind, scope, size), reason)
                break
            job.result["collectives"].append(record)
            say(job, "%(kind)s, %(scope)s, %(ranks)d ranks, %(bytes)d bytes: %(bus_gbps).4g GB/s" % record)
        cases -= len(sizes)
        save(job)


# ---- The run ----

def start_job(options, place) -> SimpleNamespace:
    """Choose the device, meet the other ranks, and lay out an empty result."""
    job = SimpleNamespace(
        start=time.perf_counter(), output=options.output, store=None, groups={}, device=torch.device("cpu"),
        gpu=torch.cuda.is_available(), pending=["memory", "matmul bf16", "matmul fp8", "attention",
                                                "memory bandwidth", "kernel launch", "collectives"],
        **vars(place))
    if job.gpu:  # with Slurm, a task may see only its own GPU
        job.device = torch.device("cuda", job.local % torch.cuda.device_count())
        torch.cuda.set_device(job.device)
    skipped, backend, nccl = [], None, None
    me = [job.node, job.local, socket.gethostname(), job.gpu]
    try:
        job.store = connect(job) if job.world > 1 else None
        job.gather = make_gather(job.store, job.rank, job.world)
        job.places = job.gather(me)
    except Exception as error:
        if job.rank != 0:
            sys.exit("trainplan probe: rank %d cannot reach rank 0: %s" % (job.rank, short(error)))
        skipped.append({"measurement": "other ranks", "reason": "rank 0 did not meet them: " + short(error)})
        job.world, job.store, job.places = 1, None, [me]  # rank 0 measures its own GPU at least
        job.gather = make_gather(None, 0, 1)
    if job.store is not None:
        job.store.set_timeout(STORE_TIMEOUT)
    nodes = len({place[0] for place in job.places})
    job.seconds = options.seconds if job.gpu else min(options.seconds, 10)
    job.deadline = time.perf_counter() + job.seconds
    if not job.gpu:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) * nodes // job.world))
        backend = "gloo" if job.world > 1 else None
    elif dist.is_available() and dist.is_nccl_available():
        backend = "nccl" if job.world > 1 else None
        version = torch.cuda.nccl.version()
        nccl = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
        if torch.__version__.startswith(("1.", "2.0.", "2.1.")):  # newer ones do so by themselves
            os.environ.setdefault("NCCL_ASYNC_ERROR_HANDLING", "1")
    job.result = {
        "schema_version": 1, "kind": "trainplan-probe",
        "measured_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": torch.cuda.get_device_name(job.device) if job.gpu else "cpu",
        "accelerator": "cpu" if not job.gpu else "rocm" if torch.version.hip else "cuda",
        "torch": str(torch.__version__).split("+")[0], "cuda": torch.version.cuda, "nccl": nccl,
        "backend": backend, "nodes": nodes, "ranks_per_node": max(1, job.world // nodes),
        "memory": None, "matmuls": [], "attention": [], "memory_gbps": None, "launch_us": None,
        "collectives": [],
        "ranks": [{"host": place[2], "local_rank": place[1], "bf16_tflops": None, "memory_gbps": None,
                   "launch_us": None} for place in job.places],
        "skipped": skipped, "seconds": 0.0}
    return job


def note_memory(job) -> None:
    values = [value for value in attempt(job, "memory", memory) if value]
    if values:
        total, free = map(min, zip(*values))
        job.result["memory"] = {"total_bytes": total, "free_bytes": free}
        say(job, "memory: %d of %d bytes are free" % (free, total))
    save(job, "memory")


def note_ranks(job, name: str, key: str, values: list) -> None:
    """One value per rank into "ranks", their median into the result."""
    for row, value in zip(job.result["ranks"], values):
        row[key] = value
    known = [value for value in values if value is not None]
    if known:
        if key in job.result:
            job.result[key] = number(statistics.median(known))
        say(job, "%s, %s: %.4g (ranks from %.4g to %.4g)" % (
            name, key, statistics.median(known), min(known), max(known)))
    save(job, name)


def measure(job) -> None:
    """All measurements, one after the other, each with its share of the time."""
    result, budget = job.result, job.seconds
    say(job, "%d processes, nodes: %d, %s, PyTorch %s" % (
        job.world, result["nodes"], result["device"], torch.__version__))
    save(job)
    if len({place[3] for place in job.places}) > 1:
        raise RuntimeError("PyTorch sees no GPU on " + ", ".join(
            sorted({place[2] for place in job.places if not place[3]})))
    note_memory(job)

    values = attempt(job, "matmul bf16", matmuls, "bf16", bf16_matmul, 0.25 * budget)
    result["matmuls"] += values[0] or []
    note_ranks(job, "matmul bf16", "bf16_tflops",
               [value and max(row["tflops"] for row in value) for value in values])

    values = attempt(job, "matmul fp8", matmuls, "fp8", fp8_matmul, 0.15 * budget)
    result["matmuls"] += values[0] or []
    if values[0]:
        say(job, "matmul fp8: %.4g TFLOPS" % max(row["tflops"] for row in values[0]))
    save(job, "matmul fp8")

    result["attention"] = attempt(job, "attention", attention, 0.1 * budget)[0] or []
    for row in result["attention"]:
        say(job, "attention, %(pass)s: %(tflops).4g TFLOPS" % row)
    save(job, "attention")

    note_ranks(job, "memory bandwidth", "memory_gbps",
               attempt(job, "memory bandwidth", memory_bandwidth, 0.05 * budget))
    note_ranks(job, "kernel launch", "launch_us",
               attempt(job, "kernel launch", kernel_launch, 0.05 * budget))
    collectives(job)
    save(job, "collectives")
    if result["collectives"] and job.gpu:
        note_memory(job)  # now with NCCL's buffers


def finish(job) -> None:
    """Leave together: rank 0 holds the store and goes last."""
    if job.world > 1:
        if dist.is_initialized():
            dist.destroy_process_group()
        job.store.set("probe/bye/%d" % job.rank, "1")
        for rank in range(job.world if job.rank == 0 else 0):
            job.store.get("probe/bye/%d" % rank)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what this cluster's GPUs and network reach.")
    parser.add_argument("--output", required=True, metavar="FILE", help="where rank 0 writes the JSON")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="N",
                        help="time for all measurements (300)")
    options = parser.parse_args()
    place = find_place()
    if TORCH_ERROR is not None:
        if place.local == 0:
            print("trainplan probe: this Python (%s) has no PyTorch: %s. Name another with --python, "
                  "or a container with --container-image." % (sys.executable, short(TORCH_ERROR)), file=sys.stderr)
        sys.exit(3)
    job = start_job(options, place)
    try:
        measure(job)
    except Exception as error:  # a rank is gone, say; what was measured is in the file
        print("trainplan probe: rank %d stopped: %s" % (job.rank, short(error)), file=sys.stderr, flush=True)
        try:
            save(job)
        finally:
            os._exit(1)  # not sys.exit: leaving NCCL in order could wait forever
    say(job, "wrote %s after %.0f s" % (job.output, time.perf_counter() - job.start))
    try:
        finish(job)
    except Exception:
        os._exit(0)


if __name__ == "__main__":
    main()
