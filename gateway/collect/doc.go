// Package collect gathers what devices randomised by themselves, and estimates from it.
//
// It knows collections, the enrolment of devices, rounds, and where reports are kept. It does not know a device's true
// value, datasets, budgets or HTTP: a report is ε-DP when it leaves the device (package local), so that whatever is made
// of reports is post-processing, and costs nothing.
//
// Errors and logs name no device, and nothing that one sent.
package collect
