/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The memory that Linux and the image on a CPU without Linux share. The same layout is in
 * punctual-isolate/src/offline/layout.rs and in punctual-bare/src/amp/shared.rs; a
 * test of punctual-isolate compares all three.
 */
#ifndef PUNCTUAL_CPU_H
#define PUNCTUAL_CPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Incremented with every change of the layout. */
#define PUNCTUAL_CPU_VERSION 2

/* One block of memory, aligned to its size. User space maps the first part, and writes the image. */
#define PUNCTUAL_CPU_BLOCK 0x200000
#define PUNCTUAL_CPU_SHARED 0x80000

/* The header of an image. */
#define PUNCTUAL_CPU_MAGIC 0x3155504354434e50ULL
struct punctual_cpu_image {
	__u64 magic;
	__u32 version;
	__u32 entry;		/* offset from the start of the block */
	__u64 tables;		/* likewise, of the first-level table */
};

enum punctual_cpu_state {
	PUNCTUAL_CPU_LOADED,
	PUNCTUAL_CPU_RUNS,
	PUNCTUAL_CPU_ENDED,
	PUNCTUAL_CPU_FAULTED,
};

/* At the start of the block; one cache line per writer. */
struct punctual_cpu_shared {
	/* Written by the module before the start. */
	__u64 base;
	__u64 distributor;
	__u64 interface;	/* GICv2: CPU interface; GICv3: the CPU's redistributor */
	__u32 version;
	__u32 cpu;
	__u32 gic;
	__u32 smc;		/* call the firmware by SMC, not by HVC */
	__u32 doorbell;		/* the interrupt to Linux */
	__u32 bell;		/* the interrupt to the image */
	__u32 patience_ms;	/* the image stops after that time without a beat from Linux; 0: never */
	__u32 grace_ms;		/* after a stop request, the image is forced to end after that time */
	__u64 reserved0;
	/* Written by the module while the image runs. */
	__u32 stop;
	__u32 ringing;
	__u64 linux_beat;
	__u64 reserved1[6];
	/* Written by the image. */
	__u32 state;
	__s32 code;
	__u64 beat;
	__u64 written;		/* bytes of text so far */
	__u64 rings;
	__u64 reserved2[4];
};

/* Text output of the image: a ring buffer at this offset in the block. */
#define PUNCTUAL_CPU_TEXT 0x1000
#define PUNCTUAL_CPU_TEXT_SIZE 0xf000
/* Figures of an app, for user space: punctual-core/src/remote.rs. */
#define PUNCTUAL_CPU_FIGURES 0x10000
/* The memory that programs share extends from here to the image. */
#define PUNCTUAL_CPU_USER 0x50000

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
	__s32 eventfd;		/* signaled when the image rings; -1: none */
	__u64 interface;	/* out */
};

#define PUNCTUAL_CPU_ABOUT _IOR('p', 0xa0, struct punctual_cpu_about)
/* Returns the address of a CPU's registers, for the page tables of an image. */
#define PUNCTUAL_CPU_PLACE _IOWR('p', 0xa1, struct punctual_cpu_start)
#define PUNCTUAL_CPU_START _IOWR('p', 0xa2, struct punctual_cpu_start)
/* Waits at most that many ms for the end; -ETIMEDOUT otherwise. */
#define PUNCTUAL_CPU_STOP _IOW('p', 0xa3, __u32)
#define PUNCTUAL_CPU_RING _IO('p', 0xa4)
/* 1 while the CPU is on. */
#define PUNCTUAL_CPU_IS_ON _IO('p', 0xa5)

#endif
