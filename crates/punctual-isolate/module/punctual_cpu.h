/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What Linux and the image on a CPU without Linux share. The same layout is in
 * punctual-isolate/src/offline/layout.rs and in punctual-bare/src/amp/shared.rs; a
 * test of punctual-isolate compares all three.
 */
#ifndef PUNCTUAL_CPU_H
#define PUNCTUAL_CPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Raised with every change of what is below. */
#define PUNCTUAL_CPU_VERSION 1

/* One block of memory, aligned to its size. User space maps the beginning, and writes the image. */
#define PUNCTUAL_CPU_BLOCK 0x200000
#define PUNCTUAL_CPU_SHARED 0x80000

/* How an image begins. */
#define PUNCTUAL_CPU_MAGIC 0x3155504354434e50ULL
struct punctual_cpu_image {
	__u64 magic;
	__u32 version;
	__u32 entry;		/* from the beginning of the block */
	__u64 tables;		/* likewise, of the first level */
};

enum punctual_cpu_state {
	PUNCTUAL_CPU_LOADED,
	PUNCTUAL_CPU_RUNS,
	PUNCTUAL_CPU_ENDED,
	PUNCTUAL_CPU_FAULTED,
};

/* At the beginning of the block; a cache line for each writer. */
struct punctual_cpu_shared {
	/* The module, before the start. */
	__u64 base;
	__u64 distributor;
	__u64 interface;	/* GICv2: CPU interface; GICv3: the CPU's redistributor */
	__u32 version;
	__u32 cpu;
	__u32 gic;
	__u32 smc;		/* the firmware is called by SMC, not by HVC */
	__u32 door;		/* what interrupts Linux */
	__u32 bell;		/* what interrupts the image */
	__u32 patience_ms;	/* without a beat of Linux, the image stops after that; 0: never */
	__u32 grace_ms;		/* asked to stop, it ends by itself or is ended after that */
	__u64 reserved0;
	/* The module, while it runs. */
	__u32 stop;
	__u32 ringing;
	__u64 linux_beat;
	__u64 reserved1[6];
	/* The image. */
	__u32 state;
	__s32 code;
	__u64 beat;
	__u64 written;		/* bytes of text so far */
	__u64 rings;
	__u64 reserved2[4];
};

/* Text of the image: a ring, at this distance from the beginning of the block. */
#define PUNCTUAL_CPU_TEXT 0x1000
#define PUNCTUAL_CPU_TEXT_SIZE 0xf000
/* What programs share lies from here to the image. */
#define PUNCTUAL_CPU_USER 0x10000

struct punctual_cpu_about {
	__u32 version;
	__u32 gic;
	__u64 base;
	__u64 distributor;
};

struct punctual_cpu_start {
	__u32 cpu;
	__u32 patience_ms;
	__u32 grace_ms;
	__s32 eventfd;		/* signalled when the image rings; -1: none */
	__u64 interface;	/* out */
};

#define PUNCTUAL_CPU_ABOUT _IOR('p', 0xa0, struct punctual_cpu_about)
/* Finds out where a CPU's registers are, for the page tables of an image. */
#define PUNCTUAL_CPU_PLACE _IOWR('p', 0xa1, struct punctual_cpu_start)
#define PUNCTUAL_CPU_START _IOWR('p', 0xa2, struct punctual_cpu_start)
/* Waits at most so many ms; without an end -ETIMEDOUT. */
#define PUNCTUAL_CPU_STOP _IOW('p', 0xa3, __u32)
#define PUNCTUAL_CPU_RING _IO('p', 0xa4)
/* 1 while the CPU is on. */
#define PUNCTUAL_CPU_IS_ON _IO('p', 0xa5)

#endif
