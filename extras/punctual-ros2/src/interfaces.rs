//! The network interfaces of this machine.
//!
//! rustdds reads them once, when it creates a participant. An interface that comes up later, such
//! as one with an address from DHCP or a wireless one after a boot, requires another participant.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Name and address of an interface.
type Place = (String, Ipv4Addr);

/// The addresses at the time of the last call.
#[derive(Debug, Default)]
pub(crate) struct Interfaces(BTreeSet<Place>);

impl Interfaces {
    /// Returns the present addresses.
    pub(crate) fn now() -> Self {
        let mut known = Self::default();
        known.new_ones();
        known
    }

    /// Returns the addresses that have appeared since the last call. One that has disappeared and
    /// appears again is among them.
    pub(crate) fn new_ones(&mut self) -> Vec<Ipv4Addr> {
        self.replace(present())
    }

    fn replace(&mut self, present: BTreeSet<Place>) -> Vec<Ipv4Addr> {
        let appeared = present.difference(&self.0).map(|(_, address)| *address).collect();
        self.0 = present;
        appeared
    }
}

/// Returns the IPv4 addresses of the interfaces that are up, since rustdds uses no others; none if
/// the kernel does not list them.
fn present() -> BTreeSet<Place> {
    let is_up = |flags: InterfaceFlags| flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
    let Ok(all) = getifaddrs() else { return BTreeSet::new() };
    let address =
        |interface: &nix::ifaddrs::InterfaceAddress| Some(interface.address.as_ref()?.as_sockaddr_in()?.ip());
    all.filter(|interface| is_up(interface.flags))
        .filter_map(|interface| Some((interface.interface_name.clone(), address(&interface)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_new_address_once() {
        let place = |name: &str, last| (name.to_owned(), Ipv4Addr::new(10, 0, 0, last));
        let mut known = Interfaces([place("lo", 1)].into());
        assert_eq!(known.replace([place("lo", 1)].into()), [Ipv4Addr::UNSPECIFIED; 0]);
        let both = || BTreeSet::from([place("lo", 1), place("eth0", 2)]);
        assert_eq!(known.replace(both()), [Ipv4Addr::new(10, 0, 0, 2)]);
        assert!(known.replace(both()).is_empty());
        // The cable is unplugged, and plugged in again.
        assert!(known.replace([place("lo", 1)].into()).is_empty());
        assert_eq!(known.replace(both()), [Ipv4Addr::new(10, 0, 0, 2)]);
        // The address moves to another interface.
        let moved = BTreeSet::from([place("lo", 1), place("wlan0", 2)]);
        assert_eq!(known.replace(moved), [Ipv4Addr::new(10, 0, 0, 2)]);
    }
}
