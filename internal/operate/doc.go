// Package operate has the commands by which people look at what runs and change it: doctor, verify, rooms, classes,
// hot, wait, rebuild, big, debug, plan, try and version. They end by themselves.
package operate
