// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Records when the selected threads enter and leave the scheduler.
//
// `cargo xtask bless bpf` builds it into schedule.bpf.o with clang alone: the required parts of the
// kernel's and libbpf's headers are copied here. Offsets of the kernel's structures are filled in
// when it is loaded (CO-RE).

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

// enum bpf_map_type of linux/bpf.h, and flags.
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_ARRAY_OF_MAPS 12
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_NO_PREALLOC 1
#define BPF_RB_NO_WAKEUP 1

// The encoding of numbers and types of maps in the BTF, as in libbpf.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

// The numbers of helpers, from linux/bpf.h.
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_get_current_comm)(void *buffer, u32 size) = (void *)16;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;

struct task_struct {
	int pid;
	int prio;
} __attribute__((preserve_access_index));

// A record for user space; record.rs decodes it.
struct record {
	u64 time;	// ns of CLOCK_MONOTONIC
	u32 thread;
	u32 what;	// bit 0: it leaves; bit 1: the tracepoint's argument; above: how many came before on this CPU
};

// The selection of threads. The verifier removes code that these make unreachable.
volatile const u32 everybody = 0;
volatile const u32 by_name = 0;
volatile const int first_priority = 1;	// none if the first is after the last
volatile const int last_priority = 0;

struct ring {
	NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 4096);
};

// A ring for each recorded CPU, so that no CPU waits for the lock of another one's ring.
struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
	struct ring *values[];
} rings SEC(".maps");

// The number of records on each CPU, including those for which there was no room.
struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} made SEC(".maps");

// The threads by number. Filled before any program is attached; the followers add threads that these create.
struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 32768);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u32);
	TYPE(value, u32);
} threads SEC(".maps");

struct name {
	char bytes[16];
};

// The threads by name.
struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 64);
	TYPE(key, struct name);
	TYPE(value, u32);
} names SEC(".maps");

INLINE int traced(u32 thread)
{
	// The idle thread has no jobs.
	if (!thread)
		return 0;
	if (everybody || bpf_map_lookup_elem(&threads, &thread))
		return 1;
	if (first_priority <= last_priority) {
		int priority = bpf_get_current_task_btf()->prio;

		if (first_priority <= priority && priority <= last_priority)
			return 1;
	}
	if (by_name) {
		struct name name;

		bpf_get_current_comm(&name, sizeof(name));
		if (bpf_map_lookup_elem(&names, &name))
			return 1;
	}
	return 0;
}

// Both tracepoints are hit with preemption off and never in a handler, so on one CPU this does not interrupt itself.
INLINE int emit(u32 what)
{
	u64 time = bpf_ktime_get_ns();
	u32 thread = bpf_get_current_pid_tgid();
	u32 cpu = bpf_get_smp_processor_id();
	u32 zero = 0;
	struct record *record;
	void *ring;
	u64 *count;

	if (!traced(thread))
		return 0;
	ring = bpf_map_lookup_elem(&rings, &cpu);
	count = bpf_map_lookup_elem(&made, &zero);
	if (!ring || !count)
		return 0;
	what |= (u32)*count << 2;
	*count += 1;
	record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
	if (!record)
		return 0;
	record->time = time;
	record->thread = thread;
	record->what = what;
	// No wake-up: the reader polls, and waking it here would distort the measurement.
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

// sched_entry_tp(bool preempt)
SEC("tp_btf/sched_entry_tp")
int schedule_enter(u64 *arguments)
{
	return emit(arguments[0] & 1 ? 2 : 0);
}

// sched_exit_tp(bool is_switch)
SEC("tp_btf/sched_exit_tp")
int schedule_exit(u64 *arguments)
{
	return emit(arguments[0] & 1 ? 3 : 1);
}

// sched_process_fork(struct task_struct *parent, struct task_struct *child)
SEC("tp_btf/sched_process_fork")
int follow_fork(u64 *arguments)
{
	u32 parent = ((struct task_struct *)arguments[0])->pid;
	u32 child = ((struct task_struct *)arguments[1])->pid;

	if (bpf_map_lookup_elem(&threads, &parent))
		bpf_map_update_elem(&threads, &child, &parent, 0);
	return 0;
}

// sched_process_free(struct task_struct *task): not earlier, because a thread that exits still enters the scheduler once.
SEC("tp_btf/sched_process_free")
int follow_free(u64 *arguments)
{
	u32 thread = ((struct task_struct *)arguments[0])->pid;

	bpf_map_delete_elem(&threads, &thread);
	return 0;
}

// Some of the helpers are only for programs under the GPL, with which the MIT license is compatible.
char _license[] SEC("license") = "Dual MIT/GPL";
