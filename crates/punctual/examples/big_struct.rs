//! A large resource is stored behind a pointer, so that only the pointer moves out of `init`.
//!
//! Either a `Box`, or a reference to memory that `init` declares, which needs no allocation.
//! `shift` shares both with `show`, which is above it and therefore sees the change at the end of
//! the lock.

#[punctual::app]
mod app {
    use punctual::prelude::*;

    pub(super) struct Image {
        pixels: [[u8; 64]; 64],
    }

    impl Image {
        const fn new(value: u8) -> Self {
            Self { pixels: [[value; 64]; 64] }
        }

        fn sum(&self) -> u32 {
            self.pixels.iter().flatten().copied().map(u32::from).sum()
        }
    }

    #[shared]
    struct Shared {
        next: Box<Image>,
        current: &'static mut Image,
    }

    #[local]
    struct Local {}

    #[init(local = [memory: Image = Image::new(0)])]
    fn init(cx: init::Context) -> (Shared, Local) {
        shift::spawn().unwrap();
        (Shared { next: Box::new(Image::new(2)), current: cx.local.memory }, Local {})
    }

    #[task(priority = 1, shared = [current, next])]
    fn shift(cx: shift::Context) {
        (cx.shared.current, cx.shared.next).lock(|current, next| {
            std::mem::swap::<Image>(current, next);
            show::spawn().unwrap();
            println!("shift ends its lock");
        });
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [current, next])]
    fn show(cx: show::Context) {
        let sums = (cx.shared.current, cx.shared.next).lock(|current, next| (current.sum(), next.sum()));
        println!("show: {sums:?}");
    }
}
