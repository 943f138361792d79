//! Checks that every register is at the offset of its document, by writing by name and reading by
//! offset, and vice versa.

use rpi_registers::fake::Fake;
use rpi_registers::gic::{CpuInterface, Distributor};
use rpi_registers::gpio::GPIO;
use rpi_registers::i2c::{C, I2C, S};
use rpi_registers::interfaces::{ReadWriteable, Readable, Writeable};
use rpi_registers::legacy_interrupts::LegacyInterrupts;
use rpi_registers::local::{Core, Cores, Local, SOURCE, TIMERS};
use rpi_registers::mailbox::{Mailbox, STATUS};
use rpi_registers::mini_uart::{LSR, MiniUart};
use rpi_registers::pwm::{CTL, PWM};
use rpi_registers::spi::{CS, SPI};
use rpi_registers::system_timer::SystemTimer;
use rpi_registers::uart::{CR, FR, INTERRUPTS, LCRH, UART};

/// Writes a different value to each register and checks its offset.
macro_rules! written {
    ($block:ident, $memory:ident: $($register:ident $([$i:literal])* = $offset:literal),* $(,)?) => {
        let mut value = 0x20;
        $(
            value += 1;
            $block.$register $([$i])* .set(value);
            assert_eq!($memory.get($offset), u32::from(value), stringify!($register));
        )*
    };
}

/// Stores a different value at each offset and reads the register.
macro_rules! read {
    ($block:ident, $memory:ident: $($register:ident $([$i:literal])* = $offset:literal),* $(,)?) => {
        let mut value = 0x40;
        $(
            value += 1;
            $memory.set($offset, value);
            assert_eq!(u32::from($block.$register $([$i])* .get()), value, stringify!($register));
        )*
    };
}

#[test]
fn gpio() {
    let (gpio, memory) = Fake::<GPIO>::new();
    written!(gpio, memory: gpfsel[0] = 0x00, gpfsel[5] = 0x14, gpset[0] = 0x1C, gpset[1] = 0x20, gpclr[0] = 0x28, gpclr[1] = 0x2C,
        gpeds[0] = 0x40, gpren[0] = 0x4C, gpfen[1] = 0x5C, gphen[0] = 0x64, gplen[0] = 0x70, gparen[0] = 0x7C, gpafen[0] = 0x88,
        gppud = 0x94, gppudclk[0] = 0x98, gppudclk[1] = 0x9C, gpio_pup_pdn_cntrl_reg[0] = 0xE4, gpio_pup_pdn_cntrl_reg[3] = 0xF0);
    read!(gpio, memory: gplev[0] = 0x34, gplev[1] = 0x38, gpeds[1] = 0x44);
}

#[test]
fn mailbox() {
    let (mailbox, memory) = Fake::<Mailbox>::new();
    written!(mailbox, memory: write = 0x20);
    read!(mailbox, memory: read = 0x00, read_status = 0x18, write_status = 0x38);
    memory.set(0x38, 1 << 31);
    assert!(mailbox.write_status.is_set(STATUS::FULL));
}

#[test]
fn uart() {
    let (uart, memory) = Fake::<UART>::new();
    written!(uart, memory: dr = 0x00, rsrecr = 0x04, ibrd = 0x24, fbrd = 0x28, lcrh = 0x2C, cr = 0x30, ifls = 0x34, imsc = 0x38,
        icr = 0x44, dmacr = 0x48);
    read!(uart, memory: fr = 0x18, ris = 0x3C, mis = 0x40);
    uart.cr.write(CR::UARTEN::SET + CR::TXE::SET + CR::RXE::SET);
    assert_eq!(memory.get(0x30), 0x301);
    uart.lcrh.write(LCRH::WLEN::Eight + LCRH::FEN::SET);
    assert_eq!(memory.get(0x2C), 0x70);
    uart.imsc.write(INTERRUPTS::RX::SET + INTERRUPTS::TX::SET + INTERRUPTS::RT::SET + INTERRUPTS::OE::SET);
    assert_eq!(memory.get(0x38), 0x470);
    memory.set(0x18, 1 << 5 | 1 << 3);
    assert!(uart.fr.is_set(FR::TXFF) && uart.fr.is_set(FR::BUSY) && !uart.fr.is_set(FR::RXFE));
}

#[test]
fn mini_uart() {
    let (uart, memory) = Fake::<MiniUart>::new();
    written!(uart, memory: aux_enables = 0x04, io = 0x40, ier = 0x44, iir = 0x48, lcr = 0x4C, mcr = 0x50, scratch = 0x5C, cntl = 0x60,
        baud = 0x68);
    read!(uart, memory: aux_irq = 0x00, lsr = 0x54, msr = 0x58, stat = 0x64);
    memory.set(0x54, 1 << 5);
    assert!(uart.lsr.is_set(LSR::TX_EMPTY) && !uart.lsr.is_set(LSR::DATA_READY));
}

#[test]
fn system_timer() {
    let (timer, memory) = Fake::<SystemTimer>::new();
    written!(timer, memory: cs = 0x00, c[0] = 0x0C, c[1] = 0x10, c[3] = 0x18);
    read!(timer, memory: clo = 0x04, chi = 0x08);
}

#[test]
fn local_peripherals_of_each_core() {
    let (local, memory) = Fake::<Local>::new();
    written!(local, memory: control = 0x00, core_timer_prescaler = 0x08, gpu_interrupts_routing = 0x0C,
        performance_monitor_interrupts_routing_set = 0x10, performance_monitor_interrupts_routing_clear = 0x14,
        core_timer_ls = 0x1C, core_timer_ms = 0x20, local_interrupt_routing = 0x24, axi_outstanding_irq = 0x30,
        local_timer = 0x34, local_timer_clear_reload = 0x38);
    read!(local, memory: axi_outstanding_counters = 0x2C);

    let (cores, memory) = Fake::<Cores>::new();
    let cores = cores.leak();
    for number in 0..4 {
        // SAFETY: the registers are in ordinary memory.
        let core = unsafe { Core::new(cores, number) };
        // Offsets of the document, minus 0x40.
        core.timers().write(TIMERS::CNTV_IRQ::SET);
        assert_eq!(memory.get(0x40 + 4 * number - 0x40), 1 << 3);
        core.mailboxes().set(5);
        assert_eq!(memory.get(0x50 + 4 * number - 0x40), 5);
        memory.set(0x60 + 4 * number - 0x40, 1 << 8);
        assert!(core.irq_source().is_set(SOURCE::GPU) && !core.irq_source().is_set(SOURCE::CNTV));
        memory.set(0x70 + 4 * number - 0x40, 1 << 11);
        assert!(core.fiq_source().is_set(SOURCE::LOCAL_TIMER));
        core.mailbox_of(number, 3).set(7);
        assert_eq!(memory.get(0x8C + 0x10 * number - 0x40), 7);
        core.mailbox(3).set(8);
        assert_eq!(memory.get(0xCC + 0x10 * number - 0x40), 8);
    }
}

#[test]
#[should_panic(expected = "there is no core 4")]
fn rejects_fifth_core() {
    // SAFETY: the registers are in ordinary memory.
    let _ = unsafe { Core::new(Fake::<Cores>::new().0.leak(), 4) };
}

#[test]
fn interrupt_controllers() {
    let (legacy, memory) = Fake::<LegacyInterrupts>::new();
    // Offsets of the document, minus 0x200.
    written!(legacy, memory: fiq_control = 0x0C, enable_irqs[0] = 0x10, enable_irqs[1] = 0x14, enable_basic_irqs = 0x18,
        disable_irqs[0] = 0x1C, disable_irqs[1] = 0x20, disable_basic_irqs = 0x24);
    read!(legacy, memory: irq_basic_pending = 0x00, irq_pending[0] = 0x04, irq_pending[1] = 0x08);

    let (gic, memory) = Fake::<Distributor>::new();
    written!(gic, memory: gicd_ctlr = 0x000, gicd_igroupr[0] = 0x080, gicd_isenabler[1] = 0x104, gicd_icenabler[31] = 0x1FC,
        gicd_ispendr[0] = 0x200, gicd_icpendr[0] = 0x280, gicd_isactiver[0] = 0x300, gicd_icactiver[0] = 0x380,
        gicd_icfgr[63] = 0xCFC, gicd_sgir = 0xF00);
    read!(gic, memory: gicd_typer = 0x004, gicd_iidr = 0x008);
    gic.gicd_ipriorityr[33].set(0xA0);
    gic.gicd_itargetsr[35].set(0x01);
    assert_eq!(
        (memory.get(0x420), memory.get(0x820)),
        (0xA000, 0x0100_0000),
        "a byte does not touch its neighbors"
    );

    let (cpu, memory) = Fake::<CpuInterface>::new();
    written!(cpu, memory: gicc_ctlr = 0x00, gicc_pmr = 0x04, gicc_bpr = 0x08, gicc_eoir = 0x10);
    read!(cpu, memory: gicc_iar = 0x0C, gicc_rpr = 0x14, gicc_hppir = 0x18);
}

#[test]
fn serial_buses() {
    let (spi, memory) = Fake::<SPI>::new();
    written!(spi, memory: cs = 0x00, fifo = 0x04, clk = 0x08, dlen = 0x0C, ltoh = 0x10, dc = 0x14);
    spi.cs.write(CS::TA::SET + CS::CLEAR::Both + CS::CPOL::SET);
    assert_eq!(memory.get(0x00), 0xB8);
    memory.set(0x00, 1 << 16 | 1 << 18);
    assert!(spi.cs.is_set(CS::DONE) && spi.cs.is_set(CS::TXD) && !spi.cs.is_set(CS::RXD));

    let (i2c, memory) = Fake::<I2C>::new();
    written!(i2c, memory: c = 0x00, s = 0x04, dlen = 0x08, a = 0x0C, fifo = 0x10, div = 0x14, del = 0x18, clkt = 0x1C);
    i2c.c.write(C::I2CEN::SET + C::ST::SET + C::READ::SET);
    assert_eq!(memory.get(0x00), 0x8081);
    memory.set(0x04, 0x300);
    assert!(i2c.s.is_set(S::ERR) && i2c.s.is_set(S::CLKT) && !i2c.s.is_set(S::DONE));
}

#[test]
fn pwm() {
    let (pwm, memory) = Fake::<PWM>::new();
    written!(pwm, memory: ctl = 0x00, sta = 0x04, dmac = 0x08, rng1 = 0x10, dat1 = 0x14, fif1 = 0x18, rng2 = 0x20, dat2 = 0x24);
    pwm.ctl.modify(CTL::PWEN2::SET + CTL::MSEN2::SET);
    assert_eq!(memory.get(0x00) & 0xFF00, 0x8100);
}
