// The first instructions of an image on a CPU that Linux gave up.
//
// PSCI enters it with the start of the block in x0, at EL1 or EL2, with MMU and caches off. The
// loader has built the page tables, zeroed uninitialized data, and cleaned the caches of all this.

    .section .text.start, "ax"
    .global _start
_start:
    msr     daifset, #0xf
    mov     x19, x0
    mrs     x0, CurrentEL
    lsr     x0, x0, #2
    cmp     x0, #2
    b.lo    2f

    // EL2 must not interfere afterwards: both counters and timers for EL1, no offset of the virtual
    // counter, no traps, and the GIC through system registers if it has them.
    mov     x0, #3
    msr     cnthctl_el2, x0
    msr     cntvoff_el2, xzr
    mov     x0, #0x33ff                 // Bits that are one.
    msr     cptr_el2, x0
    msr     hstr_el2, xzr
    mrs     x0, id_aa64pfr0_el1
    ubfx    x0, x0, #24, #4
    cbz     x0, 1f
    mov     x0, #0xf
    msr     S3_4_C12_C9_5, x0           // ICC_SRE_EL2
    isb
1:  mrs     x0, midr_el1
    msr     vpidr_el2, x0
    mrs     x0, mpidr_el1
    msr     vmpidr_el2, x0
    mov     x0, #(1 << 31)              // EL1 has 64 bits.
    msr     hcr_el2, x0
    ldr     w0, =0x30d00800
    msr     sctlr_el1, x0
    mov     x0, #0x3c5                  // EL1 with its own stack pointer, D, A, I and F masked
    msr     spsr_el2, x0
    adr     x0, 2f
    msr     elr_el2, x0
    eret

2:  msr     spsel, #1
    ldr     w0, =0x30d00800             // SCTLR_EL1: bits that are one; everything else off
    msr     sctlr_el1, x0
    isb
    mov     x0, #(3 << 20)              // The FPU without traps.
    msr     cpacr_el1, x0
    adrp    x0, vectors
    add     x0, x0, :lo12:vectors
    msr     vbar_el1, x0

    ic      iallu
    tlbi    vmalle1
    dsb     nsh
    isb
    ldr     x0, =0x04ff                 // 0: memory, write-back; 1: devices, nGnRE
    msr     mair_el1, x0
    // 39 bits of addresses, pages of 4 KiB, tables inner shareable and write-back; no upper half.
    ldr     x0, =(25 | (1 << 8) | (1 << 10) | (3 << 12) | (1 << 23))
    mrs     x1, id_aa64mmfr0_el1
    and     x1, x1, #7
    orr     x0, x0, x1, lsl #32
    msr     tcr_el1, x0
    adrp    x0, __image_start
    ldr     x0, [x0, #16]
    add     x0, x0, x19
    msr     ttbr0_el1, x0
    isb
    ldr     w0, =0x30d01805             // and MMU, caches
    msr     sctlr_el1, x0
    isb

    // Faults are reported on the stack of EL1. Everything else, including interrupts, uses the
    // other stack pointer.
    adrp    x0, __fault_stack_end
    mov     sp, x0
    msr     spsel, #0
    adrp    x0, __stack_end
    mov     sp, x0
    mov     x29, #0                     // The outermost frame.
    mov     x30, #0
    bl      __punctual_bare_start
3:  wfi
    b       3b
    .ltorg
