//! Interrupts of peripherals to which threads of `punctual-kernel` subscribe: reception of a UART,
//! the four compare registers of the system timer, and the local timer. Also tests callbacks,
//! one-shot and on a grid.
//!
//! needs: bcm2836-interrupts: it uses the timers of this controller
//! sample: one board per instruction set
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use embedded_io::{Read, ReadReady};
use programs::pins::uart_clock;
use punctual_bare::{interrupt, println};
use punctual_kernel_bare::Board;
use rpi_hal::gpio;
use rpi_hal::local_timer::LocalTimer;
use rpi_hal::timer::{self, Alarm};
use rpi_hal::uart::{Handler, Pins, Rings, Uart};
use rpi_registers::Peripherals;

type Kernel = punctual_kernel::Kernel<Board>;
type Thread = punctual_kernel::Thread<Board>;
type Mutex<T> = punctual_kernel::Mutex<Board, T>;
type Semaphore = punctual_kernel::Semaphore<Board>;
type Server = punctual_kernel::Server<Board>;
type Callback = punctual_kernel::Callback<Board>;
type Stack = punctual_kernel::Stack<Board, 8176>;

punctual_bare::entry!(main);

static STACKS: [Stack; 2] = [const { Stack::new() }; 2];
static SERVER: Server = Server::new();

fn main() -> ! {
    punctual_kernel_bare::init();
    Thread::spawn(4, &STACKS[0], subscribes, ()).unwrap();
    Kernel::run();
    punctual_bare::exit(0)
}

fn subscribes(_: ()) {
    SERVER.start(9, &STACKS[1]).unwrap();
    let peripherals = Peripherals::take().unwrap();
    let (mut bank, pins) = gpio::split(peripherals.gpio);
    let pins = (pins.gpio14.into_alternate(&mut bank), pins.gpio15.into_alternate(&mut bank));
    receive(Uart::new(peripherals.uart0, pins, uart_clock(), 115_200));
    let (timer, one, three) = timer::split(peripherals.system_timer);
    // SAFETY: in QEMU there is no VideoCore.
    let (zero, two) = unsafe { timer.alarms_of_the_videocore() };
    *ALARMS.lock().unwrap() = Some((zero, one, two, three));
    compare();
    count_down(LocalTimer::new(peripherals.local));
    keep_to_a_grid();
    Kernel::stop();
}

static HANDLER: Mutex<Option<Handler>> = Mutex::new("UART", None);
static RECEIVED: Semaphore = Semaphore::new(0, u32::MAX);
static UART: Callback = Callback::new(&SERVER, on_uart, 0);

/// The interrupt is masked until this has run, so it may wait for a mutex.
fn on_uart(_: usize) {
    if let Some(handler) = HANDLER.lock().unwrap().as_mut() {
        handler.handle();
    }
    RECEIVED.v().unwrap();
}

/// Prints a received line.
fn receive(uart: Uart<impl Pins>) {
    static mut RINGS: Rings<256, 64> = Rings::new();
    let rings = &raw mut RINGS;
    // SAFETY: the only reference, because this is called once.
    let (handler, mut reader, _) = uart.with_rings(unsafe { &mut *rings });
    *HANDLER.lock().unwrap() = Some(handler);
    UART.subscribe_irq(interrupt::UART0).unwrap();
    let mut line = [0; 32];
    let mut length = 0;
    loop {
        while let Ok(true) = reader.read_ready() {
            let Ok(count) = reader.read(&mut line[length..=length]);
            length += count;
            if line[length - 1] == b'\n' {
                // Skip an empty line: the end of input from before the UART was enabled.
                if length > 1 {
                    let text = core::str::from_utf8(&line[..length - 1]).unwrap();
                    return println!("UART: {text}");
                }
                length = 0;
            }
        }
        RECEIVED.p().unwrap();
    }
}

static ALARMS: Mutex<Option<(Alarm<0>, Alarm<1>, Alarm<2>, Alarm<3>)>> = Mutex::new("alarms", None);
static ALARM: [Callback; 4] = [
    Callback::new(&SERVER, on_alarm, 0),
    Callback::new(&SERVER, on_alarm, 1),
    Callback::new(&SERVER, on_alarm, 2),
    Callback::new(&SERVER, on_alarm, 3),
];
static DONE: Semaphore = Semaphore::new(0, 100);

fn on_alarm(number: usize) {
    if let Some((zero, one, two, three)) = ALARMS.lock().unwrap().as_mut() {
        match number {
            0 => zero.clear(),
            1 => one.clear(),
            2 => two.clear(),
            _ => three.clear(),
        }
    }
    println!("system timer: compare {number}");
    DONE.v().unwrap();
}

/// The compare registers match in an order other than that of their numbers.
fn compare() {
    let numbers = [
        interrupt::SYSTEM_TIMER0,
        interrupt::SYSTEM_TIMER1,
        interrupt::SYSTEM_TIMER2,
        interrupt::SYSTEM_TIMER3,
    ];
    if let Some((zero, one, two, three)) = ALARMS.lock().unwrap().as_mut() {
        zero.set_after(30_000);
        one.set_after(10_000);
        two.set_after(40_000);
        three.set_after(20_000);
    }
    for (alarm, number) in ALARM.iter().zip(numbers) {
        alarm.subscribe_irq(number).unwrap();
    }
    (0..4).for_each(|_| DONE.p().unwrap());
}

static LOCAL_TIMER: Mutex<Option<LocalTimer>> = Mutex::new("local timer", None);
static LOCAL: Callback = Callback::new(&SERVER, on_local_timer, 0);

fn on_local_timer(_: usize) {
    if let Some(timer) = LOCAL_TIMER.lock().unwrap().as_mut() {
        timer.clear();
    }
    DONE.v().unwrap();
}

/// Runs every 5 ms.
fn count_down(mut timer: LocalTimer) {
    timer.start(5_000);
    let began = Kernel::now();
    *LOCAL_TIMER.lock().unwrap() = Some(timer);
    LOCAL.subscribe_irq(interrupt::LOCAL_TIMER).unwrap();
    (0..10).for_each(|_| DONE.p().unwrap());
    let took = Kernel::now() - began;
    Kernel::unsubscribe_irq(interrupt::LOCAL_TIMER);
    println!("local timer: 10 times, as long as ten periods: {}", took.abs_diff(50_000_000) < 1_000_000);
}

static GRID: Callback = Callback::new(&SERVER, on_grid, 0);
static ONCE: Callback = Callback::new(&SERVER, |_| println!("once"), 0);
static FIRST: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);
static LATEST: AtomicU64 = AtomicU64::new(0);

const PERIOD: u64 = 1_000_000;

fn on_grid(_: usize) {
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let late = Kernel::now() - (FIRST.load(Ordering::Relaxed) + u64::from(call) * PERIOD);
    LATEST.fetch_max(late, Ordering::Relaxed);
    DONE.v().unwrap();
}

/// Callbacks of the kernel's own timer.
fn keep_to_a_grid() {
    ONCE.after(2_500_000);
    FIRST.store(Kernel::now() + PERIOD, Ordering::Relaxed);
    GRID.every(FIRST.load(Ordering::Relaxed), PERIOD).unwrap();
    (0..100).for_each(|_| DONE.p().unwrap());
    GRID.cancel();
    // The callback is no later at the end than at the start.
    let is_kept = LATEST.load(Ordering::Relaxed) < PERIOD / 2;
    println!("on a grid: 100 times, missed: {}, kept: {is_kept}", GRID.missed());
}
